// SPDX-License-Identifier: Apache-2.0
#include "cli/job/act.h"

#include <algorithm>
#include <ostream>

#include "api/json.h"
#include "base/translate.h"
#include "cli/selection.h"

namespace gflow::cli {

Positional jobs_to_act_on() {
  return {.name = "JOB...",
          .help = tr("Job ids, such as 42 or 1-5; @ is your newest job."),
          .least = 1,
          .most = kAnyNumber,
          .complete = Complete::Job};
}

std::set<JobId> those_in(Context& context, const std::vector<JobId>& jobs, StatusSet statuses) {
  JobQuery query;
  query.jobs = jobs;
  query.statuses = statuses;
  std::set<JobId> found;
  // What was done is known; a daemon that went away meanwhile does not make it untrue.
  const auto page = fetch_jobs(context.daemon(), query);
  for (const api::JobView& job : page ? page->jobs : std::vector<api::JobView>{}) {
    found.insert(job.id);
  }
  return found;
}

int act_on_each(Context& context,
                const std::vector<JobId>& jobs,
                const Act& act,
                const std::function<std::string(JobId)>& say,
                const std::function<std::string(JobId)>& say_otherwise) {
  std::vector<JobId> accepted;
  std::vector<JobId> done;
  int worst = 0;
  const auto act_on = [&](const std::vector<JobId>& some) -> Result<void> {
    const std::vector<JobId> changed = GF_TRY(act(some));
    accepted.insert(accepted.end(), some.begin(), some.end());
    done.insert(done.end(), changed.begin(), changed.end());
    return {};
  };
  const auto refused = [&](const Error& error) {
    context.error(error);
    worst = std::max(worst, exit_code(error.code));
  };
  if (const auto all = act_on(jobs); !all) {
    if (jobs.size() == 1 || all.error().code == Code::Unreachable) {
      refused(all.error());
      return worst;
    }
    for (const JobId job : jobs) {
      if (const auto one = act_on({job}); !one) refused(one.error());
    }
  }
  if (context.json) {
    context.out << api::write_job_ids(done) << '\n';
    return worst;
  }
  for (const JobId job : say_otherwise ? accepted : done) {
    const bool changed = std::ranges::find(done, job) != done.end();
    context.out << (changed ? say(job) : say_otherwise(job)) << '\n';
  }
  return worst;
}

}  // namespace gflow::cli
