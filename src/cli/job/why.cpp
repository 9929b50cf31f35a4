// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ostream>

#include "api/json.h"
#include "cli/context.h"
#include "cli/job/job_text.h"
#include "cli/job/subcommands.h"
#include "cli/selection.h"
#include "os/clock.h"

namespace gflow::cli {

namespace {

Result<int> run(const Invocation& invocation, Context& context) {
  const auto jobs = GF_TRY(resolve_jobs(invocation.words, newest_of(context.daemon())));
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
    const WallTime now = os::now().wall;
    if (!first) context.out << '\n';
    first = false;
    context.out << why_text(*job, {now, os::utc_offset(now)});
  }
  return worst;
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
      .run = run,
  };
}

}  // namespace gflow::cli
