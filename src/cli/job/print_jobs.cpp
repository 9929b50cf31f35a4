// SPDX-License-Identifier: Apache-2.0
#include "cli/job/print_jobs.h"

#include <algorithm>
#include <ostream>

#include "api/json.h"
#include "cli/selection.h"

namespace gflow::cli {

Result<int> print_jobs(const Invocation& invocation,
                       Context& context,
                       const std::function<std::string(const api::JobView&)>& text) {
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
    if (!first) context.out << '\n';
    first = false;
    context.out << text(*job);
  }
  return worst;
}

}  // namespace gflow::cli
