// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/translate.h"
#include "cli/job/job_text.h"
#include "cli/job/print_jobs.h"
#include "cli/job/subcommands.h"
#include "command/context.h"
#include "command/times.h"

namespace gflow::cli {

namespace {

Result<int> run_show(const Invocation& invocation, Context& context) {
  std::optional<api::DaemonView> daemon;
  if (!context.json) {
    // What is enforced is an extra: a job is shown without it, too.
    if (auto view = context.daemon().daemon()) daemon = *std::move(view);
  }
  std::optional<JobId> waits;
  const auto text_of = [&](JobId id) -> Result<std::string> {
    if (context.json) return api::write(GF_TRY(context.daemon().job(id))) + '\n';
    const api::Explanation explained = GF_TRY(context.daemon().explain(id));
    if (!waits && explained.job.status == Status::Queued) waits = id;
    const auto when = [](WallTime at) { return local_text(at); };
    return job_text(explained, daemon, when, context.paint, context.columns);
  };
  const int code = GF_TRY(print_jobs(invocation, context, text_of));
  if (waits) context.hint(tr_format("Why it waits: gjob why {}", waits->value));
  return code;
}

}  // namespace

Command job_show_command() {
  return {
      .name = "show",
      .summary = tr("show all details of jobs"),
      .usage = {"JOB..."},
      .description = tr("Shows what a job requested, which GPUs and CPUs it was allocated and why, "
                        "how it ended, which limits are enforced on it and where its log is."),
      .words = {.name = "JOB...",
                .help = tr("Job ids, such as 42 or 1-5; @ is your newest job."),
                .least = 1,
                .most = kAnyNumber,
                .complete = Complete::Job},
      .aliases = {"s"},
      .run = run_show,
  };
}

}  // namespace gflow::cli
