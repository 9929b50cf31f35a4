// SPDX-License-Identifier: Apache-2.0
#include "api/expected_start.h"

#include <algorithm>

namespace gflow::api {

std::optional<ExpectedStart> begin_of(const JobView& job, WallTime now) {
  if (!is_pending(job.status) || job.blockers.size() != 1) return std::nullopt;
  const BlockerView& only = job.blockers.front();
  if (only.kind != BlockerKind::BeginTime || !only.at) return std::nullopt;
  return ExpectedStart{std::max(*only.at, now), StartBy::BeginTime};
}

}  // namespace gflow::api
