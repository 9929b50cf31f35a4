// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "api/types.h"

namespace gflow::cli {

/// When a job that waits should start, by what is known of it.
struct ExpectedStart {
  WallTime at;
  bool is_begin_time = false;  ///< it was asked for, and is no estimate

  friend bool operator==(const ExpectedStart&, const ExpectedStart&) = default;
};

/// By the time it may begin and the time limits of the jobs that hold what it lacks. Nothing where
/// one of them has no limit, or where another job is ahead of it.
[[nodiscard]] std::optional<ExpectedStart> expected_start(const api::JobView& job, WallTime now);

/// The same for all jobs of a listing: those behind a job say when the scheduler expects that one
/// to start, from limits and from how long jobs like it ran.
[[nodiscard]] std::map<JobId, ExpectedStart> expected_starts(const std::vector<api::JobView>& jobs,
                                                             WallTime now);

}  // namespace gflow::cli
