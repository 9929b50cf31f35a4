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
      tr_format("token '{}' of scope '{}', until: {}. It is shown once; whoever has it is "
                "you, within its scope",
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
  context.out << table_text(
      {{tr("TOKEN")}, {tr("USER")}, {tr("SCOPE")}, {tr("CREATED")}, {tr("EXPIRES")}},
      rows,
      Header::Shown,
      context.paint);
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
  return {
      .name = "create",
      .summary = tr("make a token and print it, once"),
      .usage = {"[--scope SCOPE] [--expires TIME] NAME"},
      .description =
          tr("Makes a token of yours and prints it: gflowd keeps only a digest of it. A token can "
             "do what its scope says and never more than you can, and it is made on the machine "
             "itself."),
      .options = {{.name = "scope",
                   .value = "SCOPE",
                   .help = tr("read: look; submit: jobs and allocations of yours, too; operate: "
                              "what an operator may, too; admin: all you may. Default: read."),
                   .complete = Complete::Choice,
                   .choices = {"read", "submit", "operate", "admin"}},
                  {.name = "expires",
                   .value = "TIME",
                   .help = tr("Not taken any more after that: '12h', '30d', 'never'. Default: "
                              "30d.")}},
      .words = {.name = "NAME", .help = tr("What it is called."), .least = 1, .most = 1},
      .examples = {{"gctl token create laptop --scope submit --expires 90d > laptop.token",
                    tr("for 'gctl remote add'")}},
      .run = run_create};
}

Command list_command() {
  return {.name = "list",
          .summary = tr("list your tokens; an administrator sees those of all"),
          .usage = {"[options]"},
          .run = run_list};
}

Command revoke_command() {
  return {
      .name = "revoke",
      .summary = tr("take tokens back, at once"),
      .usage = {"[--user USER] NAME..."},
      .options = {{.name = "user",
                   .value = "USER",
                   .help = tr("Whose they are, for administrators."),
                   .complete = Complete::User}},
      .words = {.name = "NAME...", .help = tr("Tokens to revoke."), .least = 1, .most = kAnyNumber},
      .run = run_revoke};
}

}  // namespace

Command gctl_token_command() {
  return {.name = "token",
          .summary = tr("make, list and revoke tokens for programs and other machines"),
          .usage = {"COMMAND [options]"},
          .examples = {{"gctl token create ci --scope submit", tr("a token that can submit jobs")},
                       {"gctl token revoke ci", tr("take it back")}},
          .subcommands = {create_command(), list_command(), revoke_command()},
          .run = run_help};
}

}  // namespace gflow::cli
