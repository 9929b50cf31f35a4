// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "api/explanation.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/job/job_text.h"
#include "cli/job/print_jobs.h"
#include "cli/job/subcommands.h"
#include "cli/selection.h"
#include "command/context.h"
#include "command/wrap.h"
#include "os/clock.h"

namespace gflow::cli {

namespace {

/// What the jobs are called that it names, in a cluster; none elsewhere.
Result<JobNames> names_in(const api::Explanation& explanation, Context& context) {
  JobNames names;
  if (!GF_TRY(context.daemon().name_space())) return names;
  JobQuery query{.jobs = {explanation.job.id}, .fields = {"spec.name", "user"}};
  for (const api::BlockerView& blocker : explanation.job.blockers) {
    for (const blocker::Holder& holder : blocker.holders) query.jobs.push_back(holder.job);
    query.jobs.insert(query.jobs.end(), blocker.jobs.begin(), blocker.jobs.end());
  }
  std::ranges::sort(query.jobs);
  const auto repeated = std::ranges::unique(query.jobs);
  query.jobs.erase(repeated.begin(), repeated.end());
  for (const api::JobView& job : GF_TRY(fetch_jobs(context.daemon(), query)).jobs) {
    names.emplace(job.id, job.spec.user.name + "/" + job.spec.name);
  }
  return names;
}

Result<int> run_why(const Invocation& invocation, Context& context) {
  return print_jobs(invocation, context, [&context](JobId id) -> Result<std::string> {
    api::Explanation explanation = GF_TRY(context.daemon().explain(id));
    if (context.json) return api::write(explanation) + '\n';
    if (context.columns > 0) {
      std::string& name = explanation.job.spec.name;
      name = cut_middle(name, context.columns / 2);
    }
    const JobNames names = GF_TRY(names_in(explanation, context));
    return fit_lines(why_text(explanation, {os::now().wall, os::utc_offset}, names),
                     context.columns);
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
