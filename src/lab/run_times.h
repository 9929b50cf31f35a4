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

/// How long a job will run: the quartiles of runs like it, none above its time limit.
struct RunEstimate {
  using Span = std::chrono::milliseconds;

  Likeness likeness = Likeness::Nothing;
  std::size_t runs = 0;  ///< that were looked at
  Span shorter{0};       ///< a quarter of them were over by then
  Span median{0};
  Span longer{0};  ///< three quarters were

  /// Of a job that has run so long, what is still before it: as long again if it has passed its
  /// like.
  [[nodiscard]] RunEstimate left(const JobSpec& spec, Span so_far) const;
  /// Of a job that has so much work behind it and starts again.
  [[nodiscard]] RunEstimate less(Span done) const;
};

/// How long jobs run, learned from those that ended: from the user's jobs of that name,
/// else from the user's with as many GPUs, else from all the user's, else from everybody's.
class RunTimes {
 public:
  using Span = RunEstimate::Span;

  /// Of jobs that finished or failed by themselves; others say nothing of how long they would have.
  void learn(const JobSpec& spec, Span run_time);
  /// The time limit, or an hour, if nothing was ever learned.
  [[nodiscard]] RunEstimate of(const JobSpec& spec) const;

 private:
  using Key = std::tuple<std::string, std::string, int>;

  /// User, name of the job or "", GPUs or -1. Kept in the order learned; quartiles sort a copy.
  std::map<Key, std::vector<Span>> seen_;
};

}  // namespace gflow::lab
