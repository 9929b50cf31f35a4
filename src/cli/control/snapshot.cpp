// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <ostream>

#include "api/snapshot.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/control/subcommands.h"
#include "command/context.h"
#include "os/file.h"

namespace gflow::cli {
namespace {

Result<int> run_snapshot(const Invocation& invocation, Context& context) {
  std::string target = "/api/v1/snapshot";
  if (invocation.has("history")) {
    const auto count = parse_number(invocation.get("history"));
    if (!count) return fail(Code::Usage, tr("--history needs a number of jobs"));
    target += fmt::format("?history={}", *count);
  }
  std::string body = GF_TRY(context.daemon().call("GET", target));
  api::Snapshot snapshot = GF_TRY(api::read_snapshot(body));
  if (invocation.has("anonymous")) {
    snapshot = api::anonymous(std::move(snapshot));
    body = api::write(snapshot);
  }
  if (!invocation.has("output") || invocation.get("output") == "-") {
    context.out << body << '\n';
    return 0;
  }
  const std::string file = invocation.get("output");
  GF_CHECK(os::write_file(file, body + '\n', 0644));
  context.note(tr_format("{} jobs written into {}", snapshot.jobs.size(), printable(file)));
  if (snapshot.left_out > 0) {
    context.note(tr_format("{} more pending jobs are left out", snapshot.left_out));
  }
  return 0;
}

}  // namespace

Command gctl_snapshot_command() {
  return {
      .name = "snapshot",
      .summary = tr("write the live state as a file to be replayed"),
      .usage = {"[-o FILE] [--anonymous]"},
      .description = tr(
          "Jobs, machine, policy and recent history as one JSON document; no commands, directories "
          "or environments. 'gflow lab replay FILE' plays it on and answers what would be if."),
      .options =
          {{.name = "output",
            .letters = "o",
            .value = "FILE",
            .help = tr("write it there instead of to standard output."),
            .complete = Complete::File},
           {.name = "anonymous",
            .help = tr("put numbers in place of names of users, jobs, projects and groups.")},
           {.name = "history",
            .value = "N",
            .help =
                tr("so many ended jobs, of which run times are learned (2000; at most 4000).")}},
      .examples = {{"gctl snapshot -o now.json", tr("into a file")},
                   {"gctl snapshot --anonymous | gzip > now.json.gz", tr("to show to others")}},
      .run = run_snapshot,
  };
}

}  // namespace gflow::cli
