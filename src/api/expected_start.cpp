// SPDX-License-Identifier: Apache-2.0
#include "api/expected_start.h"

#include <algorithm>

namespace gflow::api {

namespace {

/// When each GPU that others hold is free: when the last job on it has ended.
std::vector<WallTime> ends_of_gpus(const std::vector<blocker::Holder>& holders) {
  std::map<int, std::optional<WallTime>> ends;
  for (const blocker::Holder& holder : holders) {
    for (const int gpu : holder.gpus) {
      const auto [at, added] = ends.try_emplace(gpu, holder.ends);
      if (added) continue;
      at->second = at->second && holder.ends ? std::max(at->second, holder.ends) : std::nullopt;
    }
  }
  std::vector<WallTime> known;
  for (const auto& [gpu, end] : ends) {
    if (end) known.push_back(*end);
  }
  std::ranges::sort(known);
  return known;
}

/// When so many GPUs more are free.
std::optional<WallTime> gpus_free(const BlockerView& blocker) {
  if (!blocker.need || !blocker.available) return std::nullopt;
  const std::int64_t missing = *blocker.need - *blocker.available;
  const std::vector<WallTime> ends = ends_of_gpus(blocker.holders);
  if (missing <= 0 || missing > static_cast<std::int64_t>(ends.size())) return std::nullopt;
  return ends[static_cast<std::size_t>(missing) - 1];
}

/// When all who hold some of it have ended. How much each gives back is not said.
std::optional<WallTime> all_ended(const BlockerView& blocker) {
  std::optional<WallTime> last;
  for (const blocker::Holder& holder : blocker.holders) {
    if (!holder.ends) return std::nullopt;
    last = last ? std::max(*last, *holder.ends) : *holder.ends;
  }
  return last;
}

/// When this does not keep it from starting any more.
std::optional<WallTime> passes_at(const BlockerView& blocker) {
  switch (blocker.kind) {
    case BlockerKind::BeginTime:
      return blocker.at;
    case BlockerKind::Gpus:
      return gpus_free(blocker);
    case BlockerKind::GpuMemory:
    case BlockerKind::GpuShare:
    case BlockerKind::HostMemory:
    case BlockerKind::Cpus:
      return all_ended(blocker);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<ExpectedStart> expected_start(const JobView& job, WallTime now) {
  if (!is_pending(job.status) || job.blockers.empty()) return std::nullopt;
  ExpectedStart start{now, StartBy::BeginTime};
  for (const BlockerView& blocker : job.blockers) {
    const auto at = passes_at(blocker);
    if (!at) return std::nullopt;
    start.at = std::max(start.at, *at);
    if (blocker.kind != BlockerKind::BeginTime) start.by = StartBy::TimeLimits;
  }
  return start;
}

std::map<JobId, ExpectedStart> expected_starts(const std::vector<JobView>& jobs, WallTime now) {
  std::map<JobId, ExpectedStart> starts;
  for (const JobView& job : jobs) {
    for (const BlockerView& blocker : job.blockers) {
      if (blocker.kind != BlockerKind::Priority || !blocker.at || blocker.jobs.empty()) continue;
      starts[blocker.jobs.front()] = {std::max(*blocker.at, now), StartBy::RunTimes};
    }
  }
  for (const JobView& job : jobs) {
    if (starts.contains(job.id)) continue;
    if (const auto start = expected_start(job, now)) starts.emplace(job.id, *start);
  }
  return starts;
}

}  // namespace gflow::api
