// SPDX-License-Identifier: Apache-2.0
#include "engine/preemption_plan.h"

#include <algorithm>

#include "engine/backfill.h"
#include "engine/parking.h"

namespace gflow::engine {

using placement::DemandIndex;
using placement::Ledger;
using placement::NodeIndex;
using placement::NodeState;
using placement::Presence;

namespace {

/// One node: who stops there, and what that costs.
struct NodePlan {
  NodeIndex node = 0;
  NodeState state;
  std::vector<JobId> stopping;
  std::vector<JobId> victims;
  std::int64_t cost = 0;          ///< compute that stops, in parts of a GPU
  std::optional<QueueKey> first;  ///< of those who stop, the place of the one nearest to a start

  /// Less has to stop; among equals, whoever is furthest back in the queue.
  friend bool operator<(const NodePlan& a, const NodePlan& b) {
    if (a.cost != b.cost) return a.cost < b.cost;
    return a.first && b.first && *b.first < *a.first;
  }
};

std::int64_t cost_of(const Job& job) {
  return std::int64_t{job.spec.request.gpus} * job.spec.request.share.parts + 1;
}

/// It has there what it has as that.
void put_as(Index& index, const Job& job, NodeIndex node, Presence presence, NodeState& state) {
  for (const auto& placement : index.placements_of(*attempt_of(job))) {
    if (placement.node != node) continue;
    index.ledger.take_on(state, index.demand_of(job.spec), placement.devices, presence);
  }
}

/// What a victim leaves: all it has, or for one that is only suspended all but memory, of its GPU
/// or, where that is parked, of the host.
void vacate(Index& index, const Job& job, NodeIndex node, NodeState& state) {
  without(index, job, node, state);
  if (job.spec.preemption != Preemption::Suspend) return;
  NodeState suspended = state;
  put_as(index, job, node, Presence::Suspended, suspended);
  const bool parks = can_be_parked(index, job, suspended.memory_free);
  put_as(index, job, node, parks ? Presence::Parked : Presence::Suspended, state);
}

/// The same of one that was told already: all, or all but what is parked.
void take_leave(Index& index, const Job& job, NodeIndex node, NodeState& state) {
  without(index, job, node, state);
  if (is_being_parked(job)) put_as(index, job, node, Presence::Parked, state);
}

/// Takes victims, the last in the queue first, until the job fits; then lets those go on that are
/// not needed after all, the first in the queue first.
bool take_victims(Index& index,
                  DemandIndex demand,
                  const std::vector<const Job*>& worst,
                  NodePlan& plan) {
  const Ledger& ledger = index.ledger;
  std::vector<const Job*> taken;
  for (const Job* job : worst) {
    if (ledger.fits_state(demand, plan.node, plan.state)) break;
    vacate(index, *job, plan.node, plan.state);
    taken.push_back(job);
  }
  if (!ledger.fits_state(demand, plan.node, plan.state)) return false;
  for (auto job = taken.rbegin(); job != taken.rend(); ++job) {
    NodeState spared = ledger.state(plan.node);
    for (const JobId id : plan.stopping) take_leave(index, *index.find(id), plan.node, spared);
    for (const Job* other : taken) {
      if (other != *job && other != nullptr) vacate(index, *other, plan.node, spared);
    }
    if (!ledger.fits_state(demand, plan.node, spared)) continue;
    plan.state = std::move(spared);
    *job = nullptr;
  }
  for (const Job* job : taken) {
    if (job == nullptr) continue;
    plan.victims.push_back(job->id);
    plan.cost += cost_of(*job);
  }
  return true;
}

/// Those who have to give way to the waiting job, or are on their way out for any other, by node.
struct NodeCandidates {
  std::vector<JobId> stopping;
  std::vector<const PreemptionCandidate*> victims;
};
using CandidatesByNode = std::map<NodeIndex, NodeCandidates>;

bool is_leaving(const Job& job) {
  const auto told = [](const auto& state) {
    return state.stop && state.stop->reason == EndReason::Preempted;
  };
  if (const auto* running = std::get_if<Running>(&job.state)) {
    return told(*running) || is_being_parked(job);
  }
  const auto* starting = std::get_if<Starting>(&job.state);
  return starting != nullptr && told(*starting);
}

bool is_still_running(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && !running->stop && !running->suspended;
}

bool may_be_preempted(const Index& index,
                      const PreemptionCandidate& candidate,
                      const QueueKey& waiting) {
  const QueueKey& running = candidate.place;
  if (running.priority != waiting.priority) return running.priority < waiting.priority;
  if (index.policy.order.order == Order::Submission || !candidate.settled) return false;
  return gives_way(index.policy.preemption, running.rank, waiting.rank);
}

CandidatesByNode candidates_by_node(Index& index,
                                    const PreemptionCandidates& candidates,
                                    const QueueKey& waiting) {
  CandidatesByNode by_node;
  const auto each_node = [&](JobId id, auto add) {
    for (const auto& placement : index.placements_of(*attempt_of(*index.find(id)))) {
      add(by_node[placement.node]);
    }
  };
  for (const JobId id : candidates.leaving) {
    each_node(id, [id](NodeCandidates& there) { there.stopping.push_back(id); });
  }
  for (const PreemptionCandidate& one : candidates.able) {
    if (!may_be_preempted(index, one, waiting) || !is_still_running(*index.find(one.id))) continue;
    each_node(one.id, [&one](NodeCandidates& there) { there.victims.push_back(&one); });
  }
  return by_node;
}

std::optional<NodePlan> plan_on(Index& index,
                                DemandIndex demand,
                                NodeIndex node,
                                const NodeCandidates& there) {
  NodePlan plan{.node = node, .state = index.ledger.state(node), .stopping = there.stopping};
  for (const JobId id : there.stopping) take_leave(index, *index.find(id), node, plan.state);
  std::vector<const PreemptionCandidate*> worst = there.victims;
  std::ranges::sort(worst, [](const PreemptionCandidate* a, const PreemptionCandidate* b) {
    return b->place < a->place;
  });
  std::vector<const Job*> jobs;
  for (const PreemptionCandidate* one : worst) jobs.push_back(index.find(one->id));
  if (!take_victims(index, demand, jobs, plan)) return std::nullopt;
  for (const PreemptionCandidate* one : worst) {
    if (std::ranges::find(plan.victims, one->id) != plan.victims.end()) plan.first = one->place;
  }
  return plan;
}

}  // namespace

PreemptionCandidates preemption_candidates(Index& index) {
  PreemptionCandidates found;
  for (const JobId id : index.preemptible) {
    const Job& job = *index.find(id);
    if (is_leaving(job)) {
      found.leaving.push_back(id);
    } else if (is_still_running(job)) {
      const bool settled = index.ran(job) >= index.policy.preemption.quantum;
      found.able.push_back({id, index.place_of(job), settled});
    }
  }
  return found;
}

std::optional<PreemptionPlan> plan_preemption(Index& index,
                                              const PreemptionCandidates& candidates,
                                              JobId id,
                                              const std::set<NodeIndex>& kept) {
  const Job& waiting = *index.find(id);
  const DemandIndex demand = index.demand_of(waiting.spec);
  const CandidatesByNode by_node = candidates_by_node(index, candidates, index.place_of(waiting));
  if (by_node.empty()) return std::nullopt;
  std::vector<NodePlan> plans;
  for (const auto& [node, there] : by_node) {
    if (kept.contains(node) || !index.ledger.could_fit(demand, node)) continue;
    if (auto plan = plan_on(index, demand, node, there)) plans.push_back(std::move(*plan));
  }
  const auto wanted = static_cast<std::size_t>(waiting.spec.request.nodes);
  if (wanted > 1) {
    for (NodeIndex node = 0; node < index.ledger.size(); ++node) {
      if (by_node.contains(node) || kept.contains(node)) continue;
      if (!index.ledger.fits(demand, node)) continue;
      plans.push_back({.node = node, .state = index.ledger.state(node)});
    }
  }
  if (plans.size() < wanted) return std::nullopt;
  std::ranges::stable_sort(plans, std::less<>{});
  plans.resize(wanted);
  PreemptionPlan found;
  for (NodePlan& plan : plans) {
    found.nodes.emplace(plan.node, std::move(plan.state));
    found.stopping.insert(found.stopping.end(), plan.stopping.begin(), plan.stopping.end());
    found.victims.insert(found.victims.end(), plan.victims.begin(), plan.victims.end());
  }
  std::ranges::sort(found.victims);
  found.victims.erase(std::ranges::unique(found.victims).begin(), found.victims.end());
  return found;
}

}  // namespace gflow::engine
