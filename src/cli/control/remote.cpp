// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <iostream>
#include <ostream>

#include "api/account.h"
#include "api/printed.h"
#include "api/refusal.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/control/subcommands.h"
#include "client/client.h"
#include "client/tunnel.h"
#include "command/context.h"
#include "command/run_command.h"
#include "command/table.h"
#include "core/token.h"
#include "os/file.h"
#include "os/terminal.h"

namespace gflow::cli {
namespace {

Result<std::string> read_token(std::string_view text) {
  text = trim(text);
  if (text.empty() || is_token_secret(text)) return std::string(text);
  return fail(
      Code::Usage,
      tr("this is not a token: a token is gflow_ followed by 64 digits and letters a to f"));
}

/// From a file that only its owner reads; nothing that others see, as the words of a command are.
Result<std::string> token_of_file(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return os::errno_error("read", path);
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(Code::Permission,
                tr_format("others can read '{}': chmod 600 it, and revoke the token if they did",
                          printable(path)));
  }
  return read_token(GF_TRY(os::read_regular_file(path, Memory::mib(1))));
}

Result<std::string> token_of_stdin(Context& context) {
  std::string text;
  if (os::is_terminal(0)) context.err << tr("Token: ") << std::flush;
  std::getline(std::cin, text);
  return read_token(text);
}

/// "SHA256:9f86...", also with colons and capitals, as `openssl x509 -fingerprint -sha256` writes
/// it.
Result<std::string> read_fingerprint(std::string_view text) {
  std::string digits = to_lower(text.substr(text.find('=') + 1));
  if (digits.starts_with("sha256:")) digits.erase(0, std::string_view("sha256:").size());
  std::erase(digits, ':');
  constexpr std::size_t kDigits = 64;
  if (digits.size() == kDigits &&
      digits.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return "SHA256:" + digits;
  }
  return fail(Code::Usage,
              tr_format("'{}' is not a fingerprint: SHA256: and 64 digits and letters a to f",
                        printable(text.substr(0, 200))));
}

/// Whether a gflowd is there, to which the token is of somebody. It is asked as later commands ask.
Result<void> check_there(const client::Remote& remote) {
  client::Client there(client::remote_server(remote.name));
  if (!remote.token.empty()) {
    const std::string principal = GF_TRY(there.call("GET", "/api/v1/principal"));
    GF_CHECK(api::read_principal(principal));
    return {};
  }
  const std::string health = GF_TRY(there.call("GET", "/healthz"));
  if (health != "ok\n") return std::unexpected(api::no_answer(printable(health.substr(0, 100))));
  return {};
}

/// The remotes there are, for a program.
Result<void> print_document(Context& context) {
  std::vector<api::RemoteView> views;
  for (const client::Remote& remote :
       GF_TRY(client::remotes([&](const Error& error) { context.note(error.message); }))) {
    views.push_back({remote.name, remote.url(), !remote.token.empty(), remote.fingerprint});
  }
  context.out << api::write_remotes(views) << '\n';
  return {};
}

Result<int> add_remote(const Invocation& invocation, Context& context) {
  client::Remote remote = GF_TRY(client::parse_remote_url(invocation.words.at(1)));
  remote.name = invocation.words.at(0);
  GF_CHECK(client::check_remote_name(remote.name));
  if (client::find_remote(remote.name)) {
    return fail(Code::WrongState,
                tr_format("remote '{}' already exists: run 'gctl remote remove {}' first",
                          remote.name,
                          remote.name));
  }
  std::string expected = invocation.get("fingerprint");
  if (!expected.empty()) expected = GF_TRY(read_fingerprint(expected));
  const std::string file = invocation.get("token-file");
  if (!file.empty()) remote.token = GF_TRY(token_of_file(file));
  remote.fingerprint = GF_TRY(client::open_tunnel(remote)).fingerprint;
  if (!expected.empty() && expected != remote.fingerprint) {
    return fail(Code::Permission,
                tr_format("the certificate of {} is {}, not {}: nothing was added",
                          remote.url(),
                          printable(remote.fingerprint),
                          expected));
  }
  context.err << tr_format(
      "{} shows the certificate\n  {}\nwhich is {}. 'gflowd status' there has "
      "the right one.\n",
      remote.url(),
      printable(remote.fingerprint),
      expected.empty() ? tr("pinned from now on") : tr("the one expected"));
  if (file.empty()) remote.token = GF_TRY(token_of_stdin(context));
  GF_CHECK(client::keep_remote(remote));
  if (const auto there = check_there(remote); !there) {
    GF_CHECK(client::forget_remote(remote.name));
    return fail(there.error().code, tr_format("{}; nothing was added", there.error().message));
  }
  if (context.json) {
    GF_CHECK(print_document(context));
  } else {
    context.out << tr_format(
        "remote '{}' is added: 'gqueue --server {}'\n", remote.name, remote.name);
  }
  return 0;
}

Result<int> list_remotes(const Invocation& /*invocation*/, Context& context) {
  if (context.json) {
    GF_CHECK(print_document(context));
    return 0;
  }
  const auto all =
      GF_TRY(client::remotes([&](const Error& error) { context.note(error.message); }));
  if (all.empty()) {
    context.out << tr("there are no remotes\n");
    return 0;
  }
  std::vector<Row> rows;
  for (const client::Remote& remote : all) {
    rows.push_back({{remote.name},
                    {printable(remote.url())},
                    {remote.token.empty() ? tr("no") : tr("yes")},
                    {printable(remote.fingerprint)}});
  }
  const std::vector<Column> columns = {
      {.header = tr("REMOTE"), .cut = Cut::Middle, .narrowest = 8},
      {.header = "URL", .cut = Cut::Middle, .narrowest = 12},
      {.header = tr("TOKEN"), .leaves = 2},
      {.header = tr("CERTIFICATE"), .cut = Cut::Middle, .narrowest = 12, .leaves = 1}};
  context.out << screen_table(columns, rows, context.columns, Header::Shown, context.paint);
  return 0;
}

Result<int> remove_remotes(const Invocation& invocation, Context& context) {
  for (const std::string& name : invocation.words) {
    GF_CHECK(client::forget_remote(name));
    if (!context.json) context.out << tr_format("remote '{}' is removed\n", name);
  }
  if (context.json) GF_CHECK(print_document(context));
  return 0;
}

Command remote_add_command() {
  return {.name = "add",
          .summary = tr("add a gflowd of another machine"),
          .usage = {"[--token-file FILE] [--fingerprint SHA256:...] NAME URL"},
          .description = tr("Connects, shows the fingerprint of the certificate and pins it, as "
                            "ssh does: if another certificate is presented later, nothing is sent. "
                            "The token is read from a file or from stdin and is tried once. Both "
                            "are kept in ~/.config/gflow/remotes, readable by you only."),
          .options = {{.name = "token-file",
                       .value = "FILE",
                       .help = tr("File with the token, readable by you only (default: stdin)."),
                       .complete = Complete::File},
                      {.name = "fingerprint",
                       .value = "SHA256:...",
                       .help = tr("Add it only if it has this certificate.")}},
          .words = {.name = "NAME URL",
                    .help = tr("Its name on this machine, and its URL, such as https://lab1:8443."),
                    .least = 2,
                    .most = 2},
          .examples = {{"gctl remote add lab https://lab1:8443 --token-file laptop.token",
                        tr("then: gqueue --server lab")}},
          .run = add_remote};
}

}  // namespace

Command gctl_remote_command() {
  Command list{.name = "list",
               .summary = tr("list remotes and their pinned certificates"),
               .usage = {"[options]"},
               .run = list_remotes};
  Command remove{.name = "remove",
                 .summary = tr("remove remotes and their tokens"),
                 .usage = {"NAME..."},
                 .words = {.name = "NAME...",
                           .help = tr("Remotes to remove."),
                           .least = 1,
                           .most = kAnyNumber},
                 .run = remove_remotes};
  return {.name = "remote",
          .summary = tr("add, list and remove the gflowd of other machines, for --server"),
          .usage = {"COMMAND [options]"},
          .subcommands = {remote_add_command(), std::move(list), std::move(remove)},
          .run = run_help};
}

}  // namespace gflow::cli
