// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "engine/index.h"

/// Inside of the engine: keeping the place of the first job that does not fit (EASY backfill,
/// Lifka, "The ANL/IBM SP Scheduling System", 1995). Not for other modules.
namespace gflow::engine {

/// Why a job may start before the blocked one, if it may.
enum class Passage {
  Blocked,
  InTime,     ///< it is over before the head can start at the earliest
  FromSpare,  ///< what it takes is not needed by the head
  Unproven,   ///< no start of the head can be proven, and its patience is not used up
};

/// The place of a blocked job, during one pass: on certain nodes from a certain time on, or, where
/// running jobs have no limit, on any node it suits.
struct Reservation {
  Index::Head head;
  placement::DemandIndex demand = 0;
  /// The nodes kept for it, as they will be when it starts.
  std::map<placement::NodeIndex, placement::NodeState> nodes;

  /// Whether a job of this shape, which fits there now, may start before the head. Assumes that a
  /// job with a time limit ends by limit and grace, and nothing of one without.
  [[nodiscard]] Passage passage(const Index& index,
                                const Shape& shape,
                                const std::vector<placement::Placement>& there) const;
  /// Whether it is over in time, or nothing is proven and the head still patient.
  [[nodiscard]] std::optional<Passage> passage_by_time(const Index& index,
                                                       const Shape& shape) const;
  /// A job that passed from what is spare takes it.
  void take_spare(const Index& index,
                  placement::DemandIndex demand,
                  const std::vector<placement::Placement>& there);

 private:
  [[nodiscard]] bool leaves_enough(const Index& index,
                                   placement::DemandIndex demand,
                                   const placement::Placement& there) const;
};

/// All places kept in one pass: of the first job that does not fit, and of those for whom room is
/// being made.
struct Places {
  std::vector<Reservation> kept;
  std::optional<Index::Head> head;  ///< the first job that does not fit, of those that keep a place
  std::optional<JobId> first;       ///< the first of all that does not fit

  /// Keeps the place of this job, which does not fit, if it is the first that has one.
  void keep_head(Index& index, JobId job);
  /// Whether the job may start there before all of those; takes what is spare if so.
  [[nodiscard]] bool let_pass(const Index& index,
                              const Shape& shape,
                              const std::vector<placement::Placement>& there);
  /// The same for a job that would get whatever devices of these nodes; takes nothing.
  [[nodiscard]] bool would_let_pass(
      const Index& index,
      const Shape& shape,
      const std::map<placement::NodeIndex, placement::NodeState>& on) const;
  [[nodiscard]] std::vector<placement::NodeIndex> node_list() const;
};

/// Keeps the place of this job, which does not fit now.
[[nodiscard]] Reservation reserve(Index& index, JobId head);

/// Gives back on the copy of a node's state what the job has there; nothing if it has nothing.
void without(Index& index, const Job& job, placement::NodeIndex node, placement::NodeState& state);

}  // namespace gflow::engine
