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
  return print_jobs(invocation, context, [&](const api::JobView& job) {
    if (job.status == Status::Queued) {
      context.hint(tr_format("try: gjob why {}", job.id.value));
    }
    return job_text(job, daemon, [](WallTime at) { return local_text(at); }, context.paint);
  });
}

}  // namespace

Command job_show_command() {
  return {
      .name = "show",
      .summary = tr("show everything about jobs"),
      .usage = {"JOB..."},
      .description =
          tr("Shows what a job asked for, which GPUs and CPUs it got and why these, how it ended, "
             "what is enforced on it and where its log is."),
      .words = {.name = "JOB...",
                .help = tr("Ids such as 42 or 1-5; @ is your newest job."),
                .least = 1,
                .most = kAnyNumber,
                .complete = Complete::Job},
      .aliases = {"s"},
      .run = run_show,
  };
}

}  // namespace gflow::cli
