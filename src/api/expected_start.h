// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "api/types.h"

namespace gflow::api {

/// What it is known by when a job should start.
enum class StartBy {
  TimeLimits,  ///< of the jobs that hold what it lacks: at the latest
  BeginTime,   ///< it was asked for, and is no estimate
  RunTimes,    ///< the scheduler expects it, also from how long jobs like those ahead ran
  NotBefore,   ///< what else keeps it waiting then is not known
};
/// When a job that waits should start, by what is known of it.
struct ExpectedStart {
  WallTime at;
  StartBy by = StartBy::TimeLimits;

  friend bool operator==(const ExpectedStart&, const ExpectedStart&) = default;
};

/// The time it may begin at, of a job that waits for nothing else; not before now. All else the
/// scheduler has to be asked.
[[nodiscard]] std::optional<ExpectedStart> begin_of(const JobView& job, WallTime now);

}  // namespace gflow::api
