// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/job.h"

namespace gflow::lab {

/// How long jobs run, learned from those that ended: the median of the user's jobs of that name,
/// else of the user's with as many GPUs, else of all the user's, else of everybody's.
class RunTimes {
 public:
  using Span = std::chrono::milliseconds;

  /// Of jobs that finished or failed by themselves; others say nothing of how long they would have.
  void learn(const JobSpec& spec, Span run_time);
  /// Never more than its time limit; the limit itself, or an hour, if nothing was ever learned.
  [[nodiscard]] Span of(const JobSpec& spec) const;
  /// What a job that has run so long still has before it: as long again if it has passed its like.
  [[nodiscard]] Span left(const JobSpec& spec, Span so_far) const;

 private:
  [[nodiscard]] Span unlimited(const JobSpec& spec) const;

  /// User, name of the job or "", GPUs or -1. Kept in the order learned; medians sort a copy.
  std::map<std::tuple<std::string, std::string, int>, std::vector<Span>> seen_;
};

}  // namespace gflow::lab
