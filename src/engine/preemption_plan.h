// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "engine/index.h"

/// Inside of the engine: which running jobs have to make room. Not for other modules.
namespace gflow::engine {

/// Where room can be made for a job, and by whom.
struct PreemptionPlan {
  std::map<placement::NodeIndex, placement::NodeState> nodes;  ///< as they will be
  std::vector<JobId> stopping;  ///< told to stop already, or being parked
  std::vector<JobId> victims;   ///< to be told now, ascending
  std::vector<JobId> lending;   ///< of them, those that only lend their GPU, ascending
};

/// A running job that allows to be stopped, or leaves its GPU idle.
struct PreemptionCandidate {
  JobId id;
  QueueKey place;        ///< if it had to queue now
  bool settled = false;  ///< ran for its quantum
  bool stops = false;    ///< it may have to stop, or be suspended
  bool lends = false;    ///< may_lend()
};
/// Those who can make room. What is said of them stays true for a step; who is stopped in it moves
/// from one list to the other.
struct PreemptionCandidates {
  std::vector<PreemptionCandidate> able;
  std::vector<JobId> leaving;  ///< stopped to make room, but not gone yet, or being parked
};
[[nodiscard]] PreemptionCandidates preemption_candidates(Index& index);

/// Room for a job that does not fit now, on none of the nodes kept for others: the nodes where the
/// least of what runs has to stop, and there the jobs that would come last in the queue. All its
/// nodes or nothing.
[[nodiscard]] std::optional<PreemptionPlan> plan_preemption(
    Index& index,
    const PreemptionCandidates& candidates,
    JobId waiting,
    const std::set<placement::NodeIndex>& kept);

}  // namespace gflow::engine
