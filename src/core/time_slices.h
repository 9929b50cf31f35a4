// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/share.h"
#include "core/job.h"

/// Turns on a device: mode TimeSlice.
namespace gflow {

/// A job that takes turns. Its part of the time is its weight: priority + 1, so that twice the
/// priority is about twice the time and nobody gets none.
struct TimeSliceUser {
  JobId job;
  int priority = kDefaultPriority;

  friend bool operator==(const TimeSliceUser&, const TimeSliceUser&) = default;
};

/// What part of a device's time a job is to have. Parts of all sum up to the whole, exactly: what
/// rounding leaves goes to those it cut most, the lower number first (largest remainder).
struct TimeSliceShare {
  JobId job;
  Share time;

  friend bool operator==(const TimeSliceShare&, const TimeSliceShare&) = default;
};
[[nodiscard]] std::vector<TimeSliceShare> time_slice_shares(
    const std::vector<TimeSliceUser>& takers);

}  // namespace gflow
