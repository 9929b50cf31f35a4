// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/token.h"
#include "base/text.h"
#include "base/translate.h"
#include "server/handlers.h"
#include "server/token_table.h"

namespace gflow::server {
namespace {

using Tokens = TokenTable::Tokens;

api::TokenView view_of_token(const Token& token, WallTime now) {
  return {.name = token.name,
          .user = token.owner.name,
          .scope = token.scope,
          .created = token.created,
          .expires = token.expires,
          .expired = has_expired(token, now)};
}

/// A name is given once, until its token has expired.
Result<Token> new_token(const api::TokenRequest& request, const Principal& by, WallTime now) {
  GF_CHECK(may_make_token(by, request.scope));
  Token token{.name = request.name,
              .owner = GF_TRY(job_owner(by)),
              .scope = request.scope,
              .digest = {},
              .created = now};
  if (request.expires_in) token.expires = now + *request.expires_in;
  return token;
}

/// Those that have expired make room for the new one of their owner.
Result<void> add_token(Tokens& tokens, Token token, WallTime now) {
  const auto is_own = [&](const Token& other) { return other.owner.uid == token.owner.uid; };
  std::erase_if(tokens,
                [&](const Token& other) { return is_own(other) && has_expired(other, now); });
  if (std::cmp_greater_equal(std::ranges::count_if(tokens, is_own), kMaxTokensPerUser)) {
    return fail(Code::Exhausted,
                tr_format("you have {} tokens, and there may be no more: revoke one with 'gctl "
                          "token revoke NAME' or DELETE /api/v1/tokens/NAME",
                          kMaxTokensPerUser));
  }
  const auto same_name = [&](const Token& other) {
    return is_own(other) && other.name == token.name;
  };
  if (std::ranges::any_of(tokens, same_name)) {
    return fail(Code::WrongState,
                tr_format("you have a token '{}' already: revoke it first ('gctl token revoke {}' "
                          "or DELETE /api/v1/tokens/{}), or take another name",
                          printable(token.name),
                          printable(token.name),
                          printable(token.name)));
  }
  tokens.push_back(std::move(token));
  return {};
}

/// The one meant: the caller's own, else the only one of that name the caller may manage.
Result<Tokens::iterator> find_token(Tokens& tokens,
                                    const Principal& by,
                                    const std::string& name,
                                    const std::string& user) {
  std::vector<Tokens::iterator> found;
  for (auto token = tokens.begin(); token != tokens.end(); ++token) {
    const bool is_meant = token->name == name && (user.empty() || token->owner.name == user);
    if (!is_meant || !may_manage_tokens(by, token->owner)) continue;
    if (user.empty() && owns(by, token->owner)) return token;
    found.push_back(token);
  }
  if (found.empty()) {
    return fail(
        Code::NotFound,
        tr_format("there is no token '{}'; 'gctl token list' and GET /api/v1/tokens list yours",
                  printable(name.substr(0, 100))));
  }
  if (found.size() == 1) return found.front();
  return fail(
      Code::Usage,
      tr_format("several users have a token '{}': say whose with --user, or user= over REST",
                printable(name.substr(0, 100))));
}

}  // namespace

void list_tokens(Exchange exchange) {
  const WallTime now = exchange.service.now().wall;
  std::vector<api::TokenView> views;
  const auto tokens = exchange.service.tokens().all();
  for (const Token& token : *tokens) {
    if (may_manage_tokens(exchange.caller, token.owner)) {
      views.push_back(view_of_token(token, now));
    }
  }
  exchange.respond(json_reply(api::write_tokens(views)));
}

// NOLINTBEGIN(performance-unnecessary-value-param): as read_body() gives it
void create_token(Exchange exchange) {
  read_body<api::TokenRequest>(
      std::move(exchange), api::read_token_request, [](Exchange known, api::TokenRequest request) {
        const WallTime now = known.service.now().wall;
        auto token = new_token(request, known.caller, now);
        if (!token) return known.respond(problem(token.error()));
        const std::string secret = make_token_secret();
        token->digest = token_digest(secret);
        const api::NewToken made{view_of_token(*token, now), secret};
        Tokens tokens = *known.service.tokens().all();
        auto done = add_token(tokens, std::move(*token), now);
        if (done) done = known.service.keep_tokens(std::move(tokens));
        if (!done) return known.respond(problem(done.error()));
        Reply reply = json_reply(api::write(made));
        reply.status = 201;
        known.respond(std::move(reply));
      });
}
// NOLINTEND(performance-unnecessary-value-param)

// NOLINTNEXTLINE(performance-unnecessary-value-param): as handlers take it
void revoke_token(Exchange exchange, TokenQuery query) {
  Tokens tokens = *exchange.service.tokens().all();
  const auto meant = find_token(tokens, exchange.caller, exchange.segment, query.user);
  if (!meant) return exchange.respond(problem(meant.error()));
  tokens.erase(*meant);
  const auto done = exchange.service.keep_tokens(std::move(tokens));
  exchange.respond(done ? empty_reply() : problem(done.error()));
}

}  // namespace gflow::server
