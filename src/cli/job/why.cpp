// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/account.h"
#include "base/translate.h"
#include "cli/job/job_text.h"
#include "cli/job/print_jobs.h"
#include "cli/job/subcommands.h"
#include "command/context.h"
#include "os/clock.h"

namespace gflow::cli {

namespace {

/// What the daemon says of the one who asks. A daemon that does not say leaves nothing to advise.
Asker asker_of(Context& context, const api::JobView& job) {
  Asker asker{.may_change = false, .max_priority = 0, .ahead = std::nullopt};
  const auto body = context.daemon().call("GET", "/api/v1/principal");
  const auto me = body ? api::read_principal(*body) : std::unexpected(body.error());
  if (!me) return asker;
  asker.may_change = me->role != "user" || me->name == job.spec.user.name;
  asker.max_priority = me->max_priority;
  for (const auto& project : me->projects) {
    if (project.name == job.spec.project) asker.max_priority = project.max_priority;
  }
  const auto behind = std::ranges::find(job.blockers, "Priority", &api::BlockerView::code);
  if (behind == job.blockers.end() || behind->jobs.empty()) return asker;
  if (const auto ahead = context.daemon().job(behind->jobs.front())) {
    asker.ahead = ahead->spec.priority;
  }
  return asker;
}

Result<int> run_why(const Invocation& invocation, Context& context) {
  return print_jobs(invocation, context, [&context](const api::JobView& job) {
    return why_text(job, {os::now().wall, os::utc_offset}, asker_of(context, job));
  });
}

}  // namespace

Command job_why_command() {
  return {
      .name = "why",
      .summary = tr("explain why a job waits and what would start it sooner"),
      .usage = {"JOB..."},
      .description = tr(
          "Lists everything that keeps a job from starting, with numbers: who holds the resources "
          "it needs and until when, what is used outside gflow, and which job is ahead."),
      .words = {.name = "JOB...",
                .help = tr("Job ids, such as 42 or 1-5; @ is your newest job."),
                .least = 1,
                .most = kAnyNumber,
                .complete = Complete::Job},
      .run = run_why,
  };
}

}  // namespace gflow::cli
