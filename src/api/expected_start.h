// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "api/types.h"

namespace gflow::api {

/// What it is known by when a job should start.
enum class StartBy {
  TimeLimits,  ///< of the jobs that hold what it lacks: at the latest
  BeginTime,   ///< it was asked for, and is no estimate
  RunTimes,    ///< the scheduler expects it, also from how long jobs like those ahead ran
};
/// When a job that waits should start, by what is known of it.
struct ExpectedStart {
  WallTime at;
  StartBy by = StartBy::TimeLimits;

  friend bool operator==(const ExpectedStart&, const ExpectedStart&) = default;
};

/// By the time it may begin and the time limits of the jobs that hold what it lacks. Nothing where
/// one of them has no limit, or where another job is ahead of it.
[[nodiscard]] std::optional<ExpectedStart> expected_start(const JobView& job, WallTime now);

/// The same for all jobs of a listing: those behind a job say when the scheduler expects that one
/// to start, from limits and from how long jobs like it ran.
[[nodiscard]] std::map<JobId, ExpectedStart> expected_starts(const std::vector<JobView>& jobs,
                                                             WallTime now);

}  // namespace gflow::api
