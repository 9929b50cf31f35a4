// SPDX-License-Identifier: Apache-2.0
#include "engine/room.h"

#include <algorithm>

#include "engine/backfill.h"

namespace gflow::engine {

using placement::DemandIndex;
using placement::Ledger;
using placement::NodeIndex;
using placement::NodeState;

namespace {

/// One node: who stops there, and what that costs.
struct NodeRoom {
  NodeIndex node = 0;
  NodeState state;
  std::vector<JobId> stopping;
  std::vector<JobId> victims;
  std::int64_t cost = 0;          ///< compute that stops, in parts of a GPU
  std::optional<QueueKey> first;  ///< of those who stop, the place of the one nearest to a start

  /// Less has to stop; among equals, whoever is furthest back in the queue.
  friend bool operator<(const NodeRoom& a, const NodeRoom& b) {
    if (a.cost != b.cost) return a.cost < b.cost;
    return a.first && b.first && *b.first < *a.first;
  }
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
bool take_victims(Index& index,
                  DemandIndex demand,
                  const std::vector<const Job*>& worst,
                  NodeRoom& room) {
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

/// Those who have to give way to the waiting job, or are on their way out for any other, by node.
struct Giving {
  std::vector<JobId> stopping;
  std::vector<const Yielder*> victims;
};
using GivingByNode = std::map<NodeIndex, Giving>;

bool is_making_room(const Job& job) {
  const auto told = [](const auto& state) {
    return state.stop && state.stop->reason == EndReason::Preempted;
  };
  if (const auto* running = std::get_if<Running>(&job.state)) return told(*running);
  const auto* starting = std::get_if<Starting>(&job.state);
  return starting != nullptr && told(*starting);
}

bool is_still_running(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && !running->stop && !running->suspended;
}

bool yields(const Index& index, const Yielder& yielder, const QueueKey& waiting) {
  const QueueKey& running = yielder.place;
  if (running.priority != waiting.priority) return running.priority < waiting.priority;
  if (index.policy.order.order == Order::Submission || !yielder.settled) return false;
  return gives_way(index.policy.yield, running.rank, waiting.rank);
}

GivingByNode givers(Index& index, const Yielding& yielding, const QueueKey& waiting) {
  GivingByNode by_node;
  const auto each_node = [&](JobId id, auto add) {
    for (const auto& placement : index.placements_of(*attempt_of(*index.find(id)))) {
      add(by_node[placement.node]);
    }
  };
  for (const JobId id : yielding.leaving) {
    each_node(id, [id](Giving& giving) { giving.stopping.push_back(id); });
  }
  for (const Yielder& one : yielding.able) {
    if (!yields(index, one, waiting) || !is_still_running(*index.find(one.id))) continue;
    each_node(one.id, [&one](Giving& giving) { giving.victims.push_back(&one); });
  }
  return by_node;
}

std::optional<NodeRoom> room_on(Index& index,
                                DemandIndex demand,
                                NodeIndex node,
                                const Giving& giving) {
  NodeRoom room{.node = node, .state = index.ledger.state(node), .stopping = giving.stopping};
  for (const JobId id : giving.stopping) without(index, *index.find(id), node, room.state);
  std::vector<const Yielder*> worst = giving.victims;
  std::ranges::sort(worst, [](const Yielder* a, const Yielder* b) { return b->place < a->place; });
  std::vector<const Job*> jobs;
  for (const Yielder* one : worst) jobs.push_back(index.find(one->id));
  if (!take_victims(index, demand, jobs, room)) return std::nullopt;
  for (const Yielder* one : worst) {
    if (std::ranges::find(room.victims, one->id) != room.victims.end()) room.first = one->place;
  }
  return room;
}

}  // namespace

Yielding yielding(Index& index) {
  Yielding found;
  for (const JobId id : index.preemptible) {
    const Job& job = *index.find(id);
    if (is_making_room(job)) {
      found.leaving.push_back(id);
    } else if (is_still_running(job)) {
      const bool settled = index.ran(job) >= index.policy.yield.quantum;
      found.able.push_back({id, index.place_of(job), settled});
    }
  }
  return found;
}

std::optional<Room> find_room(Index& index,
                              const Yielding& yielding,
                              JobId id,
                              const std::set<NodeIndex>& kept) {
  const Job& waiting = *index.find(id);
  const DemandIndex demand = index.demand_of(waiting.spec);
  const GivingByNode by_node = givers(index, yielding, index.place_of(waiting));
  if (by_node.empty()) return std::nullopt;
  std::vector<NodeRoom> rooms;
  for (const auto& [node, giving] : by_node) {
    if (kept.contains(node) || !index.ledger.could_fit(demand, node)) continue;
    if (auto room = room_on(index, demand, node, giving)) rooms.push_back(std::move(*room));
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
  std::ranges::stable_sort(rooms, std::less<>{});
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
