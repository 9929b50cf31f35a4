// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <iostream>
#include <ostream>

#include "base/text.h"
#include "base/translate.h"
#include "cli/control/subcommands.h"
#include "client/tunnel.h"
#include "command/context.h"
#include "command/run_command.h"
#include "command/table.h"
#include "core/token.h"
#include "os/file.h"
#include "os/terminal.h"

namespace gflow::cli {
namespace {

/// From a file that only its owner reads, else from stdin: nothing that others see, as the words of
/// a command are.
Result<std::string> token_given(const Invocation& invocation, Context& context) {
  std::string text;
  if (const std::string path = invocation.get("token-file"); !path.empty()) {
    struct stat facts{};
    if (::stat(path.c_str(), &facts) != 0) return os::errno_error("read", path);
    if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
      return fail(Code::Permission,
                  tr_format("others can read '{}': chmod 600 it, and revoke the token if they did",
                            printable(path)));
    }
    text = GF_TRY(os::read_regular_file(path, Memory::mib(1)));
  } else {
    if (os::is_terminal(0)) context.err << tr("Token: ") << std::flush;
    std::getline(std::cin, text);
  }
  text = trim(text);
  if (text.empty() || is_token_secret(text)) return text;
  return fail(Code::Usage, tr("this is no token: one is gflow_ and 64 digits and letters a to f"));
}

Result<int> add_remote(const Invocation& invocation, Context& context) {
  client::Remote remote = GF_TRY(client::parse_remote_url(invocation.words.at(1)));
  remote.name = invocation.words.at(0);
  GF_CHECK(client::check_remote_name(remote.name));
  if (client::find_remote(remote.name)) {
    return fail(
        Code::WrongState,
        tr_format(
            "there is a remote '{}': 'gctl remote remove {}' first", remote.name, remote.name));
  }
  remote.fingerprint = GF_TRY(client::open_tunnel(remote)).fingerprint;
  const std::string expected = invocation.get("fingerprint");
  if (!expected.empty() && expected != remote.fingerprint) {
    return fail(Code::Permission,
                tr_format("the certificate of {} is {}, not {}: nothing was added",
                          remote.url(),
                          printable(remote.fingerprint),
                          printable(expected)));
  }
  context.err << tr_format(
      "{} shows the certificate\n  {}\nwhich is {}. 'gflowd status' there has "
      "the right one.\n",
      remote.url(),
      printable(remote.fingerprint),
      expected.empty() ? tr("pinned from now on") : tr("the one expected"));
  remote.token = GF_TRY(token_given(invocation, context));
  GF_CHECK(client::keep_remote(remote));
  context.out << tr_format(
      "remote '{}' is added: 'gqueue --server {}'\n", remote.name, remote.name);
  return 0;
}

Result<int> list_remotes(const Invocation& /*invocation*/, Context& context) {
  const auto all = GF_TRY(client::remotes());
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
  context.out << table_text({{tr("REMOTE")}, {"URL"}, {tr("TOKEN")}, {tr("CERTIFICATE")}},
                            rows,
                            Header::Shown,
                            context.paint);
  return 0;
}

Result<int> remove_remotes(const Invocation& invocation, Context& context) {
  for (const std::string& name : invocation.words) {
    GF_CHECK(client::forget_remote(name));
    context.out << tr_format("remote '{}' is removed\n", name);
  }
  return 0;
}

Command remote_add_command() {
  return {.name = "add",
          .summary = tr("add a gflowd of another machine"),
          .usage = {"[--token-file FILE] [--fingerprint SHA256:...] NAME URL"},
          .description = tr(
              "Connects, shows the fingerprint of the certificate and pins it, as ssh does: where "
              "another one is shown later, nothing is sent. The token is read from a file, or "
              "from stdin. Both are kept in ~/.config/gflow/remotes, readable by you only."),
          .options = {{.name = "token-file",
                       .value = "FILE",
                       .help = tr("File with the token, readable by you only (default: stdin)."),
                       .complete = Complete::File},
                      {.name = "fingerprint",
                       .value = "SHA256:...",
                       .help = tr("Add it only if its certificate is this one.")}},
          .words = {.name = "NAME URL",
                    .help = tr("What it is called here, and where it is: https://lab1:8443."),
                    .least = 2,
                    .most = 2},
          .examples = {{"gctl remote add lab https://lab1:8443 --token-file laptop.token",
                        tr("then: gqueue --server lab")}},
          .run = add_remote};
}

}  // namespace

Command gctl_remote_command() {
  Command list{.name = "list",
               .summary = tr("list them, with what is pinned"),
               .usage = {"[options]"},
               .run = list_remotes};
  Command remove{.name = "remove",
                 .summary = tr("forget them, with their tokens"),
                 .usage = {"NAME..."},
                 .words = {.name = "NAME...",
                           .help = tr("Remotes to forget."),
                           .least = 1,
                           .most = kAnyNumber},
                 .run = remove_remotes};
  return {.name = "remote",
          .summary = tr("add, list and remove gflowd of other machines, for --server"),
          .usage = {"COMMAND [options]"},
          .subcommands = {remote_add_command(), std::move(list), std::move(remove)},
          .run = run_help};
}

}  // namespace gflow::cli
