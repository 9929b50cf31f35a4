// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <ostream>

#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/job/job_text.h"
#include "cli/job/subcommands.h"
#include "cli/job/wait.h"
#include "cli/selection.h"
#include "command/context.h"

namespace gflow::cli {

namespace {

/// "30s", "5m", "1h30m"; a bare number is seconds, as for timeout(1). 0 looks once.
Result<std::chrono::milliseconds> parse_timeout(const std::string& text) {
  if (const auto seconds = parse_number(text); seconds && *seconds < 315'360'000) {
    return std::chrono::seconds(*seconds);
  }
  return std::chrono::milliseconds(GF_TRY(parse_duration(text)));
}

Result<int> run_wait(const Invocation& invocation, Context& context) {
  std::optional<std::chrono::milliseconds> most;
  if (invocation.has("timeout")) most = GF_TRY(parse_timeout(invocation.get("timeout")));
  const auto jobs = GF_TRY(resolve_jobs(invocation.words, context.daemon()));
  const auto ended = GF_TRY(wait_for(context, jobs, most));
  for (const api::JobView& job : ended) {
    if (context.json) {
      context.out << api::write(job) << '\n';
    } else {
      context.hint(tr_format("Job {} {}", job.id.value, ended_text(job)));
    }
  }
  if (const std::string advice = failure_advice(ended); !advice.empty()) context.hint(advice);
  return exit_code_of(ended);
}

}  // namespace

Command job_wait_command() {
  return {
      .name = "wait",
      .summary = tr("wait until jobs have ended"),
      .usage = {"[--timeout TIME] JOB..."},
      .description = tr("Waits until all jobs have ended and exits with the exit code of the job, "
                        "or the highest of several: 128 + N if signal N killed the job (137 at its "
                        "memory limit), 125 if it has no exit code (cancelled, time limit reached, "
                        "never started). Keeps waiting across restarts of the daemon."),
      .options = {{.name = "timeout",
                   .value = "TIME",
                   .help = tr("Give up after this time, with exit code 8: 30s, 5m; a plain number "
                              "is in seconds.")}},
      .words = {.name = "JOB...",
                .help = tr("Job ids, such as 42 or 1-5; @ is your newest job."),
                .least = 1,
                .most = kAnyNumber,
                .complete = Complete::Job},
      .aliases = {"w"},
      .run = run_wait,
  };
}

}  // namespace gflow::cli
