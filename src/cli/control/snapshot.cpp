// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <ostream>

#include "api/snapshot.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/control/subcommands.h"
#include "command/context.h"
#include "os/file.h"
#include "settings/settings.h"

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
    snapshot = api::anonymous(std::move(snapshot), settings::names_users);
    body = api::write(snapshot);
  }
  if (!invocation.has("output") || invocation.get("output") == "-") {
    context.out << body << '\n';
    return 0;
  }
  const std::string file = invocation.get("output");
  GF_CHECK(os::write_file(file, body + '\n', 0644));
  context.note(tr_format("{} jobs written to {}", snapshot.jobs.size(), printable(file)));
  if (snapshot.left_out > 0) {
    context.note(tr_format("{} more waiting jobs are left out", snapshot.left_out));
  }
  return 0;
}

}  // namespace

Command gctl_snapshot_command() {
  return {
      .name = "snapshot",
      .summary = tr("save the live state for a replay"),
      .usage = {"[-o FILE] [--anonymous]"},
      .description = tr("Writes jobs, machine, policy and recent history as one JSON document, "
                        "without commands, directories or environments. 'gflow lab replay FILE' "
                        "continues from it and answers what-if questions."),
      .options = {{.name = "output",
                   .letters = "o",
                   .value = "FILE",
                   .help = tr("Write to this file instead of standard output."),
                   .complete = Complete::File,
                   .excludes = {"json"}},
                  {.name = "anonymous",
                   .help =
                       tr("Replace the names of users, jobs, projects and groups with numbers.")},
                  {.name = "history",
                   .value = "N",
                   .help = tr("Number of ended jobs to include, from which run times are learned "
                              "(default: 2000, maximum: 4000).")}},
      .examples = {{"gctl snapshot -o now.json", tr("save to a file")},
                   {"gctl snapshot --anonymous | gzip > now.json.gz",
                    tr("share a snapshot with others")}},
      .run = run_snapshot,
  };
}

}  // namespace gflow::cli
