// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "engine/index.h"

/// Inside of the engine: which running jobs have to make room. Not for other modules.
namespace gflow::engine {

/// Where room can be made for a job, and by whom.
struct Room {
  std::map<placement::NodeIndex, placement::NodeState> nodes;  ///< as they will be
  std::vector<JobId> stopping;                                 ///< told to stop already
  std::vector<JobId> victims;                                  ///< to be told now
};

/// Whether this running job has to give way to the waiting one: it allows it, is not being stopped,
/// and the other comes before it by more than a little (Order::yields).
[[nodiscard]] bool yields(const Index& index, const Job& running, const Job& waiting);

/// Room for a job that does not fit now, on none of the nodes kept for others: the nodes where the
/// least of what runs has to stop, and there the jobs that would come last in the queue. All its
/// nodes or nothing.
[[nodiscard]] std::optional<Room> find_room(Index& index,
                                            JobId waiting,
                                            const std::set<placement::NodeIndex>& kept);

}  // namespace gflow::engine
