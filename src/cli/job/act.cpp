// SPDX-License-Identifier: Apache-2.0
#include "cli/job/act.h"

#include <algorithm>
#include <ostream>

#include "api/json.h"

namespace gflow::cli {

namespace {

void report(Context& context,
            const std::vector<JobId>& done,
            const std::function<std::string(JobId)>& say) {
  if (context.json) {
    context.out << api::write_job_ids(done) << '\n';
    return;
  }
  for (const JobId job : done) context.out << say(job) << '\n';
}

}  // namespace

int act_on_each(Context& context,
                const std::vector<JobId>& jobs,
                const Act& act,
                const std::function<std::string(JobId)>& say) {
  const auto all = act(jobs);
  if (all) {
    report(context, *all, say);
    return 0;
  }
  if (jobs.size() == 1 || all.error().code == Code::Unreachable) {
    context.error(all.error());
    return exit_code(all.error().code);
  }
  int worst = 0;
  std::vector<JobId> done;
  for (const JobId job : jobs) {
    const auto one = act({job});
    if (one) {
      done.push_back(job);
      continue;
    }
    context.error(one.error());
    worst = std::max(worst, exit_code(one.error().code));
  }
  report(context, done, say);
  return worst;
}

}  // namespace gflow::cli
