// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/job.h"

namespace gflow::lab {

/// Whose runs the time of a job is estimated by, from the most alike to none at all.
enum class Likeness { SameName, SameGpus, SameUser, AllUsers, TimeLimit, Nothing };
/// For people: "same user and name".
[[nodiscard]] std::string_view likeness_text(Likeness likeness);

/// How long a job will run on: the quartiles of runs like it that were longer than it is by now,
/// none beyond its time limit.
struct RunEstimate {
  using Span = std::chrono::milliseconds;

  Likeness likeness = Likeness::Nothing;
  std::size_t runs = 0;  ///< that the quartiles are of
  Span shorter{0};       ///< a quarter of them were over by then
  Span median{0};
  Span longer{0};  ///< three quarters were
};

/// How long jobs run, learned from those that ended: from the user's jobs of that name,
/// else from the user's with as many GPUs, else from all the user's, else from everybody's.
class RunTimes {
 public:
  using Span = RunEstimate::Span;

  /// Of jobs that finished or failed by themselves; others say nothing of how long they would have.
  void learn(const JobSpec& spec, Span run_time);
  /// Of a job that has run, or worked before it was queued again, for so long. As long again if it
  /// has passed all its like; the time limit, or an hour, if nothing was ever learned.
  [[nodiscard]] RunEstimate left(const JobSpec& spec, Span so_far) const;

 private:
  using Key = std::tuple<std::string, std::string, int>;

  /// User, name of the job or "", GPUs or -1. Kept in the order learned; quartiles sort a copy.
  std::map<Key, std::vector<Span>> seen_;
};

}  // namespace gflow::lab
