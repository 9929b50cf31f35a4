// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "core/job.h"

/// Which moves of running jobs would start one that waits.
namespace gflow {

/// What was found out about a job that waits.
enum class DefragOutcome {
  Moves,           ///< these moves would start it; without any, those of jobs ahead would
  HasRoom,         ///< it has room as it is: something else keeps it waiting
  WaitsForMore,    ///< than room: a limit of its user, or more jobs that start together with it
  NotEnoughFree,   ///< in all, however it is arranged
  NothingMovable,  ///< nothing that runs where it could run may be moved
  NoMoveHelps,
  NotSearched,  ///< to the end: there was too much to look at
};
inline constexpr std::array kDefragOutcomes = {DefragOutcome::Moves,
                                               DefragOutcome::HasRoom,
                                               DefragOutcome::WaitsForMore,
                                               DefragOutcome::NotEnoughFree,
                                               DefragOutcome::NothingMovable,
                                               DefragOutcome::NoMoveHelps,
                                               DefragOutcome::NotSearched};
[[nodiscard]] constexpr std::string_view defrag_outcome_name(DefragOutcome outcome) {
  constexpr std::array<std::string_view, kDefragOutcomes.size()> kNames = {"moves",
                                                                           "has_room",
                                                                           "waits_for_more",
                                                                           "not_enough_free",
                                                                           "nothing_movable",
                                                                           "no_move_helps",
                                                                           "not_searched"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

/// A running job that stops and starts again elsewhere.
struct DefragMove {
  JobId job;
  std::vector<Allocation> from;       ///< by node; without CPUs
  std::vector<Allocation> to;         ///< the same
  std::chrono::seconds lost_time{0};  ///< that it has run by now, in this attempt

  friend bool operator==(const DefragMove&, const DefragMove&) = default;
};

/// A job that starts together with another.
struct DefragStart {
  JobId job;
  std::vector<Allocation> to{};  ///< by node; without CPUs; of outcome Moves

  friend bool operator==(const DefragStart&, const DefragStart&) = default;
};

/// For a job that waits, or jobs that start together: who moves, and where it starts then.
struct DefragPlan {
  JobId job;  ///< of several the first in the queue
  DefragOutcome outcome = DefragOutcome::NoMoveHelps;
  std::vector<DefragMove> moves{};
  int other_moves = 0;                  ///< of jobs that are not shown
  std::vector<Allocation> to{};         ///< of outcome Moves
  std::vector<DefragStart> together{};  ///< the others
  /// Whether one ahead of it keeps its place and goes on waiting: it must not delay that.
  bool is_behind = false;
  std::optional<JobId> behind{};  ///< which; empty where that is not shown

  /// Whether it is one of those that would start.
  [[nodiscard]] bool starts(JobId id) const {
    return job == id || std::ranges::find(together, id, &DefragStart::job) != together.end();
  }
  friend bool operator==(const DefragPlan&, const DefragPlan&) = default;
};

}  // namespace gflow
