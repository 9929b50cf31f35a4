// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "base/translate.h"
#include "cli/submit/request.h"
#include "command/times.h"
#include "core/status.h"

namespace gflow::cli {
namespace {

std::string awaited_text(const Dependencies& wants, const std::vector<api::JobView>& awaited) {
  const auto has_failed = [](const api::JobView& job) {
    return is_ended(job.status) && job.status != Status::Finished;
  };
  const auto has_finished = [](const api::JobView& job) { return job.status == Status::Finished; };
  const bool any = wants.mode == DependencyMode::Any;
  if (any ? std::ranges::any_of(awaited, has_finished)
          : std::ranges::all_of(awaited, has_finished)) {
    return "";
  }
  if (any ? std::ranges::all_of(awaited, has_failed) : std::ranges::any_of(awaited, has_failed)) {
    const api::JobView& failed = *std::ranges::find_if(awaited, has_failed);
    const std::string why =
        tr_format("job {} ({}) did not finish", failed.id.value, status_name(failed.status));
    return wants.auto_cancel ? tr_format("It would be cancelled at once: {}.\n", why)
                             : tr_format("It would never start: {}.\n", why);
  }
  std::vector<std::uint64_t> jobs;
  for (const api::JobView& job : awaited) {
    if (!is_ended(job.status)) jobs.push_back(job.id.value);
  }
  if (any && jobs.size() > 1) {
    return tr_format("It would wait until one of jobs {} has finished.\n", fmt::join(jobs, ","));
  }
  return tr_count(jobs.size(),
                  "It would wait until job {} has finished.\n",
                  "It would wait until jobs {} have finished.\n",
                  fmt::join(jobs, ","));
}

}  // namespace

std::string gates_text(const JobSpec& spec,
                       const std::vector<api::JobView>& awaited,
                       const Clocks& clocks) {
  std::string out;
  if (spec.hold) out += tr("It would be on hold until 'gjob release'.\n");
  if (spec.begin && *spec.begin > clocks.now) {
    out += tr_format("It would wait until its begin time: {}.\n",
                     moment_text(*spec.begin, clocks.now, clocks.zone));
  }
  if (!spec.dependencies.jobs.empty()) out += awaited_text(spec.dependencies, awaited);
  return out;
}

}  // namespace gflow::cli
