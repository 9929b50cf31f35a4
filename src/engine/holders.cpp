// SPDX-License-Identifier: Apache-2.0
#include "engine/holders.h"

namespace gflow::engine {

std::optional<WallTime> end_on_calendar(const Index& index, const Job& job, Now now) {
  const auto end = index.promised_end(job);
  if (!end) return std::nullopt;
  return now.wall + (std::max(*end, now.mono) - now.mono);
}

blocker::Holder holder_of(const Index& index, const Job& job, std::vector<int> gpus, Now now) {
  return {job.id, job.spec.user.name, std::move(gpus), end_on_calendar(index, job, now)};
}

blocker::Holder running(const Index& index, const Job& job, Now now) {
  std::vector<int> gpus;
  std::vector<Allocation> parts = allocations_of(*attempt_of(job));
  if (parts.size() == 1) gpus = std::move(parts.front().gpus);
  return holder_of(index, job, std::move(gpus), now);
}

}  // namespace gflow::engine
