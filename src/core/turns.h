// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/share.h"
#include "core/job.h"

/// Turns on a device: mode TimeSlice. Who has the device next, for how long, and what each has had.
namespace gflow {

/// A job that takes turns. Its part of the time is its weight: priority + 1, so that twice the
/// priority is about twice the time and nobody gets none.
struct TurnTaker {
  JobId job;
  int priority = kDefaultPriority;

  friend bool operator==(const TurnTaker&, const TurnTaker&) = default;
};

/// What part of a device's time a job is to have. Parts of all sum up to the whole, exactly: what
/// rounding leaves goes to those it cut most, the lower number first (largest remainder).
struct TurnShare {
  JobId job;
  Share time;

  friend bool operator==(const TurnShare&, const TurnShare&) = default;
};
[[nodiscard]] std::vector<TurnShare> turn_shares(const std::vector<TurnTaker>& takers);

/// The account of one device: stride scheduling (Waldspurger and Weihl, MIT/LCS/TM-528, 1995) in
/// integers. Each job's virtual time runs by what it used divided by its weight, and the next turn
/// goes to the one furthest behind, the lower number at a tie. So over any stretch in which two
/// jobs both want the device, what they had, by weight, differs by less than one turn of each. One
/// that joins starts where the one furthest behind stands: it is not owed the time before.
class TurnAccount {
 public:
  using Span = std::chrono::milliseconds;

  explicit TurnAccount(Span turn = std::chrono::seconds(2)) : turn_(turn) {}

  void join(const TurnTaker& taker);
  void leave(JobId job);
  /// Its weight changes from now on.
  void change(const TurnTaker& taker);

  /// Who has the device next and for how long; nothing if nobody is there.
  [[nodiscard]] std::optional<std::pair<JobId, Span>> next() const;
  /// It had the device for so long, more or less than its turn. Ignored for one that left.
  void charge(JobId job, Span used);
  /// What it had since it joined.
  [[nodiscard]] Span had(JobId job) const;

  /// Longest until a job gets its next turn, if all use their turns up: how long people wait.
  [[nodiscard]] Span longest_wait() const;

 private:
  struct Entry {
    std::int64_t weight = 1;
    std::int64_t virtual_time = 0;  // milliseconds * kScale / weight
    Span had{0};
  };

  Span turn_;
  std::map<JobId, Entry> entries_;
  std::int64_t reached_ = 0;  // where one stands that joins when nobody is there
};

}  // namespace gflow
