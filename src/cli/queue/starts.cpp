// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/starts.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

#include "api/waiting_jobs.h"
#include "base/translate.h"
#include "command/times.h"

namespace gflow::cli {

void Starts::know(const api::QueueView& queue) {
  for (const api::QueuedJob& job : queue.jobs) {
    if (job.expected_start) starts_.emplace(job.id, *job.expected_start);
  }
}

void Starts::look_at(const api::JobView& job, WallTime now) {
  if (const auto begin = api::begin_of(job, now)) starts_.emplace(job.id, *begin);
}

std::optional<api::ExpectedStart> Starts::of(JobId job) const {
  const auto found = starts_.find(job);
  return found == starts_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Field> start_fields(const Starts& starts) {
  return {
      {"START",
       {"START_TIME"},
       tr("with --start: when it should start"),
       0,
       [&starts](const api::JobView& job) {
         const auto start = starts.of(job.id);
         return Cell{start ? local_text(start->at) : "-"};
       },
       {"id"}},
      {"START_BY",
       {},
       tr("with --start: how that is known: begin_time (it was asked for), time_limits or "
          "run_times (an estimate), not_before (it may be later)"),
       0,
       [&starts](const api::JobView& job) {
         const auto start = starts.of(job.id);
         return Cell{start ? std::string(api::start_by_name(start->by)) : "-"};
       },
       {"id"}},
  };
}

std::vector<api::JobView> in_order_of_start(std::vector<api::JobView> jobs,
                                            const Starts& starts,
                                            const api::QueueView& queue) {
  std::map<JobId, std::size_t> places;
  for (const api::QueuedJob& job : queue.jobs) places.emplace(job.id, places.size());
  const auto key_of = [&](const api::JobView& job) {
    const auto start = starts.of(job.id);
    const auto place = places.find(job.id);
    return std::tuple(start ? start->at : WallTime::max(),
                      place == places.end() ? places.size() : place->second,
                      -job.spec.priority,
                      job.id);
  };
  std::ranges::sort(jobs, std::less(), key_of);
  return jobs;
}

}  // namespace gflow::cli
