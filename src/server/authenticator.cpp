// SPDX-License-Identifier: Apache-2.0
#include "server/authenticator.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/translate.h"
#include "os/fd.h"
#include "server/routes.h"
#include "server/web_guard.h"

namespace gflow::server {
namespace {

Principal anonymous() {
  return {.name = "anonymous", .uid = std::nullopt, .projects = {}, .scope = Scope::Read};
}

Reply wait_reply(std::string why, RateLimit::Verdict verdict) {
  Reply reply = problem(Error{Code::Exhausted, std::move(why)}, 429);
  reply.headers.emplace_back("Retry-After", fmt::format("{}", verdict.wait.count()));
  return reply;
}

/// Of one connection the answer would not change, as the kernel is asked when it begins.
Reply ask_again(const Error& error) {
  Reply reply = problem(error);
  reply.hangs_up = true;
  return reply;
}

/// What came, as one line of the log may have it.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 200;
  return printable(text.substr(0, kMost));
}

std::string asked(const Request& request) {
  return fmt::format("{} {}", shown(request.method), shown(request.path));
}

std::string where_from(const Guest& guest) {
  if (guest.via != Via::Unix) return guest.address;
  return fmt::format("the socket, uid {}, pid {}", guest.peer.uid, guest.peer.pid);
}

/// What only administrators, operators and owners of tokens do, wherever they are.
bool is_delicate(const Request& request) {
  const Route* route = find_route(request.method, request.path);
  return route != nullptr && (route->verb == Verb::Entrust || route->verb == Verb::Operate ||
                              route->verb == Verb::Administer);
}

}  // namespace

Authenticator::Authenticator(Rules rules, const TokenTable& tokens, Audit audit)
    : rules_(rules), tokens_(tokens), audit_(std::move(audit)), identity_(rules.own_uid) {}

Result<void> Authenticator::may_enter(const Rules& rules, std::uint32_t uid) {
  if (rules.any_user || uid == 0 || uid == rules.own_uid) return {};
  return fail(Code::Permission, tr("this gflowd serves only the user it runs as"));
}

Authenticator::Decision Authenticator::authenticate(const Guest& guest,
                                                    const Request& request,
                                                    Now now) {
  Decision decided = who_asks(guest, request, now);
  if (request.is_unread && std::holds_alternative<Principal>(decided)) {
    return unauthorized(
        Error{Code::Permission, tr("it was not known who asks when the request began; ask again")});
  }
  return decided;
}

Authenticator::Decision Authenticator::who_asks(const Guest& guest,
                                                const Request& request,
                                                Now now) {
  if (guest.via == Via::Unix) return identity_.of(guest.peer);
  if (auto answer = answer_preflight(request)) return std::move(*answer);
  // Whatever is shown with it: who watches is not kept out, nor does that count as a try.
  if (is_open(request.method, request.path)) return anonymous();
  if (!request.authorization) return by_connection(guest, request, now.mono);
  const auto shown = [&] { return by_authorization(*request.authorization, now); };
  if (auto owner = shown()) return std::move(*owner);
  return turn_down(guest, request, [&] { return shown().error(); }, now.mono);
}

Authenticator::Decision Authenticator::by_connection(const Guest& guest,
                                                     const Request& request,
                                                     MonoTime now) {
  if (!page_of(request).empty()) {
    return unauthorized(Error{Code::Permission, tr("a web page has to show a token")});
  }
  if (!guest.certificate.empty()) {
    const auto shown = [&] { return by_certificate(guest, now); };
    if (auto account = shown()) return std::move(*account);
    return turn_down(guest, request, [&] { return shown().error(); }, now);
  }
  if (guest.refusal) {
    if (os::is_out_of_files(*guest.refusal)) return ask_again(*guest.refusal);
    const Error refusal{guest.refusal->code, tr(guest.refusal->message)};
    return guest.is_known ? problem(refusal) : unauthorized(refusal);
  }
  return identity_.of_loopback(guest.peer.uid);
}

Result<Principal> Authenticator::by_authorization(std::string_view authorization, Now now) {
  const auto secret = bearer_of(authorization);
  if (secret) return by_token(*secret, now);
  return fail(Code::Permission,
              tr("the only way to show who you are is 'Authorization: Bearer TOKEN'"));
}

Result<Principal> Authenticator::by_certificate(const Guest& guest, MonoTime now) {
  const auto uid = accounts_.uid_of(guest.certificate, now);
  if (!uid || *uid == 0) {
    return fail(Code::Permission,
                tr_format("the certificate names '{}', which is no account of this machine that "
                          "may come that way",
                          shown(guest.certificate)));
  }
  GF_CHECK(may_enter(rules_, *uid));
  Principal principal = identity_.of_account(*uid);
  principal.known_by = KnownBy::Certificate;
  principal.credential = guest.certificate;
  return principal;
}

Result<Principal> Authenticator::by_token(std::string_view secret, Now now) {
  const auto token = tokens_.find_by_secret(secret);
  if (!token) {
    return fail(Code::Permission, tr("this token is not known, or was revoked"));
  }
  if (has_expired(*token, now.wall)) {
    return fail(Code::Permission,
                tr_format("token '{}' has expired: make another one with 'gctl token create'",
                          printable(token->name)));
  }
  const std::uint32_t uid = token->owner.uid;
  GF_CHECK(may_enter(rules_, uid));
  if (uid != rules_.own_uid && !accounts_.has(uid, now.mono)) {
    return fail(
        Code::Permission,
        tr_format("token '{}' belongs to an account that is no more", printable(token->name)));
  }
  Principal principal = identity_.of_account(uid);
  principal.role = role_within(token->scope, principal.role);
  principal.known_by = KnownBy::Token;
  principal.scope = token->scope;
  principal.credential = token->name;
  return principal;
}

/// Says so in the log, in English, until there are too many: who fills it hides what he does.
Reply Authenticator::turn_down(const Guest& guest,
                               const Request& request,
                               const std::function<Error()>& why,
                               MonoTime now) {
  const auto verdict = failed_.count(counted_as(guest), now);
  if (verdict.wait.count() == 0) {
    const std::string reason = in_english([&] { return why().message; });
    note(request.terms.request_id,
         fmt::format("from {}: {}: 401: {}", where_from(guest), asked(request), reason));
    return unauthorized(why());
  }
  note_limit(request.terms.request_id, "from " + where_from(guest), "failed tries", verdict);
  Reply reply = wait_reply(tr("too many failed tries; wait"), verdict);
  reply.hangs_up = true;
  return reply;
}

std::optional<Reply> Authenticator::slow_down(const Guest& guest,
                                              const Principal& caller,
                                              const Request& request,
                                              MonoTime now) {
  const Route* route = find_route(request.method, request.path);
  if (route == nullptr || route->verb != Verb::Entrust) return std::nullopt;
  const auto verdict = entrusted_.count(fmt::format("uid {}", record_of(caller).uid), now);
  if (verdict.wait.count() == 0) return std::nullopt;
  note_limit(request.terms.request_id,
             fmt::format("{} from {}", text_of(caller), where_from(guest)),
             "changes of tokens",
             verdict);
  return wait_reply(tr("you changed tokens too often; wait"), verdict);
}

/// By its id a line is found again in the answer, and in the log of requests.
void Authenticator::note(std::string_view request_id, const std::string& text) const {
  audit_(fmt::format("request {}: {}", request_id, text));
}

/// Once, with the first of all that are refused until the time is over.
void Authenticator::note_limit(std::string_view request_id,
                               const std::string& who,
                               std::string_view what,
                               RateLimit::Verdict verdict) const {
  if (!verdict.is_first) return;
  note(
      request_id,
      fmt::format(
          "{}: too many {}, no more of them are logged for {} s", who, what, verdict.wait.count()));
}

Result<Principal> Authenticator::still(const Guest& guest,
                                       const std::optional<std::string>& authorization,
                                       Now now) {
  if (guest.via == Via::Unix) return identity_.of(guest.peer);
  if (authorization) return by_authorization(*authorization, now);
  if (!guest.certificate.empty()) return by_certificate(guest, now.mono);
  return identity_.of_loopback(guest.peer.uid);
}

std::optional<Authenticator::Audited> Authenticator::audited(const Guest& guest,
                                                             const Principal& caller,
                                                             const Request& request) {
  if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
  const Route* route = find_route(request.method, request.path);
  if (route != nullptr && only_reads(route->verb)) return std::nullopt;
  const bool is_elsewhere = guest.via == Via::Tls || caller.known_by == KnownBy::Token;
  if (!is_elsewhere && !is_delicate(request)) return std::nullopt;
  return Audited{request.terms.request_id,
                 text_of(caller),
                 fmt::format("from {}: {}", where_from(guest), asked(request))};
}

Reply unauthorized(const Error& error) {
  Reply reply = problem(error, 401);
  reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"gflow\"");
  reply.hangs_up = true;  // a try costs a connection
  return reply;
}

std::string text_of(const Principal& caller) {
  const std::string by =
      caller.credential.empty()
          ? std::string(known_by_name(caller.known_by))
          : fmt::format("{} '{}'", known_by_name(caller.known_by), shown(caller.credential));
  return fmt::format("{} ({})", shown(caller.name), by);
}

void Authenticator::audit(const Audited& request, int status, MonoTime now) {
  constexpr int kRefused = 400;
  if (status >= kRefused) {
    const auto verdict = refused_.count(request.by, now);
    if (verdict.wait.count() > 0) {
      return note_limit(request.request_id, request.by, "refused requests", verdict);
    }
  }
  note(request.request_id, fmt::format("{} {}: {}", request.by, request.what, status));
}

}  // namespace gflow::server
