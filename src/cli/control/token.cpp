// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ostream>

#include "api/token.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/control/subcommands.h"
#include "command/context.h"
#include "command/run_command.h"
#include "command/table.h"
#include "command/times.h"

namespace gflow::cli {
namespace {

std::string expiry_text(const api::TokenView& token) {
  if (!token.expires) return tr("never");
  const std::string when = local_text(*token.expires);
  return token.expired ? tr_format("{} (expired)", when) : when;
}

Result<int> run_create(const Invocation& invocation, Context& context) {
  api::TokenRequest request;
  request.name = invocation.words.front();
  GF_CHECK(context.needs_own_machine(
      tr("tokens are made on the machine itself; log in there, and run it there")));
  GF_CHECK(check_token_name(request.name));
  if (invocation.has("scope")) request.scope = GF_TRY(parse_scope(invocation.get("scope")));
  const std::string expires = invocation.get("expires");
  if (expires == "never") {
    request.expires_in.reset();
  } else if (!expires.empty()) {
    request.expires_in = GF_TRY(parse_duration(expires));
  }
  const api::NewToken made = GF_TRY(context.daemon().create_token(request));
  if (context.json) {
    context.out << api::write(made) << '\n';
    return 0;
  }
  context.note(
      tr_format("token '{}', scope '{}', valid until: {}. It is shown only once; whoever holds it "
                "acts as you within its scope",
                printable(made.view.name),
                scope_name(made.view.scope),
                expiry_text(made.view)));
  context.out << made.secret << '\n';
  return 0;
}

Result<int> run_list(const Invocation& /*invocation*/, Context& context) {
  const auto tokens = GF_TRY(context.daemon().tokens());
  if (context.json) {
    context.out << api::write_tokens(tokens) << '\n';
    return 0;
  }
  if (tokens.empty()) {
    context.out << tr("there are no tokens\n");
    return 0;
  }
  std::vector<Row> rows;
  for (const api::TokenView& token : tokens) {
    rows.push_back({{printable(token.name)},
                    {printable(token.user)},
                    {std::string(scope_name(token.scope))},
                    {local_text(token.created)},
                    {expiry_text(token), token.expired ? Style::Red : Style::Plain}});
  }
  const std::vector<Column> columns = {
      {.header = tr("TOKEN"), .cut = Cut::Middle, .narrowest = 8},
      {.header = tr("USER"), .cut = Cut::End, .narrowest = 6, .leaves = 1},
      {.header = tr("SCOPE")},
      {.header = tr("CREATED"), .leaves = 2},
      {.header = tr("EXPIRES")}};
  context.out << screen_table(columns, rows, context.columns, Header::Shown, context.paint);
  return 0;
}

Result<int> run_revoke(const Invocation& invocation, Context& context) {
  for (const std::string& name : invocation.words) {
    GF_CHECK(check_token_name(name));
    GF_CHECK(context.daemon().revoke_token(name, invocation.get("user")));
    if (!context.json) context.out << tr_format("token '{}' is revoked\n", printable(name));
  }
  if (context.json) context.out << api::write_tokens(GF_TRY(context.daemon().tokens())) << '\n';
  return 0;
}

Command create_command() {
  return {.name = "create",
          .summary = tr("create a token and print it once"),
          .usage = {"[--scope SCOPE] [--expires TIME] NAME"},
          .description = tr("Creates a token that acts for you and prints it; gflowd keeps only a "
                            "digest of it. A token allows what its scope says and never more than "
                            "you may do. Tokens are created on the machine itself."),
          .options = {{.name = "scope",
                       .value = "SCOPE",
                       .help = tr(
                           "read: view; submit: also your own jobs and allocations; operate: also "
                           "what operators may do; admin: all that you may do (default: read)."),
                       .complete = Complete::Choice,
                       .choices = {"read", "submit", "operate", "admin"}},
                      {.name = "expires",
                       .value = "TIME",
                       .help = tr("Expires after this time: 12h, 30d or never (default: 30d).")}},
          .words = {.name = "NAME", .help = tr("Name of the token."), .least = 1, .most = 1},
          .examples = {{"gctl token create laptop --scope submit --expires 90d > laptop.token",
                        tr("for 'gctl remote add'")}},
          .run = run_create};
}

Command list_command() {
  return {.name = "list",
          .summary = tr("list your tokens; administrators see those of all users"),
          .usage = {"[options]"},
          .run = run_list};
}

Command revoke_command() {
  return {
      .name = "revoke",
      .summary = tr("revoke tokens immediately"),
      .usage = {"[--user USER] NAME..."},
      .options = {{.name = "user",
                   .value = "USER",
                   .help = tr("Owner of the tokens; for administrators."),
                   .complete = Complete::User}},
      .words = {.name = "NAME...", .help = tr("Tokens to revoke."), .least = 1, .most = kAnyNumber},
      .run = run_revoke};
}

}  // namespace

Command gctl_token_command() {
  return {.name = "token",
          .summary = tr("create, list and revoke tokens for programs and other machines"),
          .usage = {"COMMAND [options]"},
          .examples = {{"gctl token create ci --scope submit", tr("a token that can submit jobs")},
                       {"gctl token revoke ci", tr("revoke it")}},
          .subcommands = {create_command(), list_command(), revoke_command()},
          .run = run_help};
}

}  // namespace gflow::cli
