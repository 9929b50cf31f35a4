// SPDX-License-Identifier: Apache-2.0
#include "engine/room.h"

#include <algorithm>
#include <tuple>

#include "engine/backfill.h"

namespace gflow::engine {

using placement::DemandIndex;
using placement::Ledger;
using placement::NodeIndex;
using placement::NodeState;

namespace {

bool is_making_room(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  const auto* starting = std::get_if<Starting>(&job.state);
  const auto& stop = running != nullptr ? running->stop : starting->stop;
  return stop && stop->reason == EndReason::Preempted;
}

/// One node: who stops there, and what that costs.
struct NodeRoom {
  NodeIndex node = 0;
  NodeState state;
  std::vector<JobId> stopping;
  std::vector<JobId> victims;
  std::int64_t cost = 0;  ///< compute that stops, in parts of a GPU
};

std::int64_t cost_of(const Job& job) {
  return std::int64_t{job.spec.request.gpus} * job.spec.request.share.parts + 1;
}

/// What a victim leaves: all it has, or for one that only stands still all but memory.
void yield_on(Index& index, const Job& job, NodeIndex node, NodeState& state) {
  without(index, job, node, state);
  if (job.spec.preemption != Preemption::Suspend) return;
  for (const auto& placement : index.placements_of(*attempt_of(job))) {
    if (placement.node != node) continue;
    index.ledger.take_on(
        state, index.demand_of(job.spec), placement.devices, placement::Presence::Standing);
  }
}

/// Takes victims, the last in the queue first, until the job fits; then lets those go on that are
/// not needed after all, the first in the queue first.
bool take_victims(Index& index, DemandIndex demand, std::vector<const Job*> worst, NodeRoom& room) {
  const Ledger& ledger = index.ledger;
  std::vector<const Job*> taken;
  for (const Job* job : worst) {
    if (ledger.fits_state(demand, room.node, room.state)) break;
    yield_on(index, *job, room.node, room.state);
    taken.push_back(job);
  }
  if (!ledger.fits_state(demand, room.node, room.state)) return false;
  for (auto job = taken.rbegin(); job != taken.rend(); ++job) {
    NodeState spared = ledger.state(room.node);
    for (const JobId id : room.stopping) without(index, *index.find(id), room.node, spared);
    for (const Job* other : taken) {
      if (other != *job && other != nullptr) yield_on(index, *other, room.node, spared);
    }
    if (!ledger.fits_state(demand, room.node, spared)) continue;
    room.state = std::move(spared);
    *job = nullptr;
  }
  for (const Job* job : taken) {
    if (job == nullptr) continue;
    room.victims.push_back(job->id);
    room.cost += cost_of(*job);
  }
  return true;
}

std::optional<NodeRoom> room_on(Index& index,
                                const Job& waiting,
                                NodeIndex node,
                                const std::vector<const Job*>& there) {
  const DemandIndex demand = index.demand_of(waiting.spec);
  NodeRoom room{.node = node, .state = index.ledger.state(node)};
  std::vector<const Job*> worst;
  for (const Job* job : there) {
    if (is_making_room(*job)) {
      without(index, *job, node, room.state);
      room.stopping.push_back(job->id);
    } else if (yields(index, *job, waiting)) {
      worst.push_back(job);
    }
  }
  std::ranges::sort(worst, [&index](const Job* a, const Job* b) {
    return index.place_of(*b) < index.place_of(*a);
  });
  if (!take_victims(index, demand, std::move(worst), room)) return std::nullopt;
  return room;
}

}  // namespace

bool yields(const Index& index, const Job& running, const Job& waiting) {
  const auto* state = std::get_if<Running>(&running.state);
  if (state == nullptr || state->stop || state->suspended) return false;
  if (running.spec.preemption == Preemption::None) return false;
  return running.spec.priority < waiting.spec.priority || index.passes(waiting, running);
}

std::optional<Room> find_room(Index& index, JobId id, const std::set<NodeIndex>& kept) {
  if (!index.policy.preempt || index.preemptible.empty()) return std::nullopt;
  const Job& waiting = *index.find(id);
  const DemandIndex demand = index.demand_of(waiting.spec);
  std::map<NodeIndex, std::vector<const Job*>> by_node;
  for (const JobId active : index.preemptible) {
    const Job& job = *index.find(active);
    for (const auto& placement : index.placements_of(*attempt_of(job))) {
      by_node[placement.node].push_back(&job);
    }
  }
  std::vector<NodeRoom> rooms;
  for (const auto& [node, jobs] : by_node) {
    if (kept.contains(node) || !index.ledger.could_fit(demand, node)) continue;
    if (auto room = room_on(index, waiting, node, jobs)) rooms.push_back(std::move(*room));
  }
  const auto wanted = static_cast<std::size_t>(waiting.spec.request.nodes);
  if (wanted > 1) {
    for (NodeIndex node = 0; node < index.ledger.size(); ++node) {
      if (by_node.contains(node) || kept.contains(node)) continue;
      if (!index.ledger.fits(demand, node)) continue;
      rooms.push_back({.node = node, .state = index.ledger.state(node)});
    }
  }
  if (rooms.size() < wanted) return std::nullopt;
  std::ranges::stable_sort(rooms, {}, &NodeRoom::cost);
  rooms.resize(wanted);
  Room found;
  for (NodeRoom& room : rooms) {
    found.nodes.emplace(room.node, std::move(room.state));
    found.stopping.insert(found.stopping.end(), room.stopping.begin(), room.stopping.end());
    found.victims.insert(found.victims.end(), room.victims.begin(), room.victims.end());
  }
  std::ranges::sort(found.victims);
  found.victims.erase(std::ranges::unique(found.victims).begin(), found.victims.end());
  return found;
}

}  // namespace gflow::engine
