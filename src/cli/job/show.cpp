// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ostream>

#include "api/json.h"
#include "cli/context.h"
#include "cli/job/job_text.h"
#include "cli/job/subcommands.h"
#include "cli/output/times.h"
#include "cli/selection.h"

namespace gflow::cli {

namespace {

Result<int> run(const Invocation& invocation, Context& context) {
  const auto jobs = GF_TRY(resolve_jobs(invocation.words, newest_of(context.daemon())));
  std::optional<api::DaemonView> daemon;
  if (!context.json) {
    // What is enforced is an extra: a job is shown without it, too.
    if (auto view = context.daemon().daemon()) daemon = *std::move(view);
  }
  int worst = 0;
  bool first = true;
  for (const JobId id : jobs) {
    const auto job = context.daemon().job(id);
    if (!job) {
      context.error(job.error());
      worst = std::max(worst, exit_code(job.error().code));
      continue;
    }
    if (context.json) {
      context.out << api::write(*job) << '\n';
      continue;
    }
    if (!first) context.out << '\n';
    first = false;
    const auto time = [](WallTime at) { return local_text(at); };
    context.out << job_text(*job, daemon, time, context.paint);
    if (job->status == Status::Queued) context.hint("try: gjob why " + std::to_string(id.value));
  }
  return worst;
}

}  // namespace

Command job_show_command() {
  return {
      .name = "show",
      .summary = "show everything about jobs",
      .usage = {"JOB..."},
      .description =
          "Shows what a job asked for, what it got, how it ended, what is enforced on it "
          "and where its log is.",
      .words = {.name = "JOB...",
                .help = "Ids such as 42 or 1-5; @ is your newest job.",
                .least = 1,
                .most = kAnyNumber,
                .complete = Complete::Job},
      .aliases = {"s"},
      .run = run,
  };
}

}  // namespace gflow::cli
