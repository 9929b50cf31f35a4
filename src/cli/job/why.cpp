// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_text.h"
#include "cli/job/print_jobs.h"
#include "cli/job/subcommands.h"
#include "command/context.h"
#include "os/clock.h"

namespace gflow::cli {

namespace {

Result<int> run_why(const Invocation& invocation, Context& context) {
  return print_jobs(invocation, context, [](const api::JobView& job) {
    const WallTime now = os::now().wall;
    return why_text(job, {now, os::utc_offset(now)});
  });
}

}  // namespace

Command job_why_command() {
  return {
      .name = "why",
      .summary = "say why a job waits and what would start it sooner",
      .usage = {"JOB..."},
      .description =
          "Lists everything that keeps a job from starting, with numbers: who holds what "
          "it needs and when that ends, what is used outside gflow, which job is ahead.",
      .words = {.name = "JOB...",
                .help = "Ids such as 42 or 1-5; @ is your newest job.",
                .least = 1,
                .most = kAnyNumber,
                .complete = Complete::Job},
      .run = run_why,
  };
}

}  // namespace gflow::cli
