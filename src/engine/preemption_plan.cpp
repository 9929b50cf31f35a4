// SPDX-License-Identifier: Apache-2.0
#include "engine/preemption_plan.h"

#include <algorithm>

#include "engine/backfill.h"
#include "engine/lending.h"
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
  std::vector<JobId> lending;     ///< of them
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

/// Who may have to make room, and how.
struct Victim {
  const Job* job = nullptr;
  QueueKey place;
  bool lends = false;  ///< its GPU is idle: nothing stops
  bool stops = false;  ///< it may have to, whether it is or not
};

/// What a victim leaves: all it has, or for one that is only suspended all but memory, of its GPU
/// or, where that is parked, of the host; or its GPU alone.
void vacate(Index& index, const Victim& victim, NodeIndex node, NodeState& state) {
  const Job& job = *victim.job;
  without(index, job, node, state);
  if (victim.lends) return put_as(index, job, node, Presence::Lent, state);
  if (job.spec.preemption != Preemption::Suspend) return;
  NodeState suspended = state;
  put_as(index, job, node, Presence::Suspended, suspended);
  const bool parks = can_be_parked(index, job, suspended.memory_free);
  put_as(index, job, node, parks ? Presence::Parked : Presence::Suspended, state);
}

/// The same of one that was told already: all, or all but what is parked.
void take_leave(Index& index, const Job& job, NodeIndex node, NodeState& state) {
  without(index, job, node, state);
  if (!is_being_parked(job)) return;
  put_as(index, job, node, is_lending(job) ? Presence::Lent : Presence::Parked, state);
}

/// Lets those go on that are not needed after all, the first in the queue first: null then.
void spare_needless(Index& index,
                    DemandIndex demand,
                    std::vector<const Victim*>& taken,
                    NodePlan& plan) {
  const Ledger& ledger = index.ledger;
  for (auto victim = taken.rbegin(); victim != taken.rend(); ++victim) {
    NodeState spared = ledger.state(plan.node);
    for (const JobId id : plan.stopping) take_leave(index, *index.find(id), plan.node, spared);
    for (const Victim* other : taken) {
      if (other != *victim && other != nullptr) vacate(index, *other, plan.node, spared);
    }
    if (!ledger.fits_state(demand, plan.node, spared)) continue;
    plan.state = std::move(spared);
    *victim = nullptr;
  }
}

/// Takes victims, those that only lend first, then the last in the queue, until the job fits.
bool take_victims(Index& index,
                  DemandIndex demand,
                  const std::vector<Victim>& worst,
                  NodePlan& plan) {
  const Ledger& ledger = index.ledger;
  std::vector<const Victim*> taken;
  for (const Victim& one : worst) {
    if (ledger.fits_state(demand, plan.node, plan.state)) break;
    vacate(index, one, plan.node, plan.state);
    taken.push_back(&one);
  }
  if (!ledger.fits_state(demand, plan.node, plan.state)) return false;
  spare_needless(index, demand, taken, plan);
  for (const Victim* victim : taken) {
    if (victim == nullptr) continue;
    plan.victims.push_back(victim->job->id);
    if (victim->lends) plan.lending.push_back(victim->job->id);
    if (!victim->lends) plan.cost += cost_of(*victim->job);
    if (!plan.first || victim->place < *plan.first) plan.first = victim->place;
  }
  return true;
}

/// Those who have to give way to the waiting job, or are on their way out for any other, by node.
struct NodeCandidates {
  std::vector<JobId> stopping;
  std::vector<Victim> victims;
};
using CandidatesByNode = std::map<NodeIndex, NodeCandidates>;

bool is_leaving(const Job& job) {
  const auto told = [](const auto& state) {
    return state.stop && state.stop->reason == EndReason::Preempted;
  };
  if (const auto* running = std::get_if<Running>(&job.state)) {
    const bool comes_back = running->lends && running->suspended && running->suspended_by.empty();
    return told(*running) || (is_being_parked(job) && !comes_back);
  }
  const auto* starting = std::get_if<Starting>(&job.state);
  return starting != nullptr && told(*starting);
}

bool is_still_running(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  if (running == nullptr || running->stop || running->suspended) return false;
  // One that moves cannot be suspended before it is there, and leaves a GPU in seconds.
  return !running->move && !is_being_parked(job);
}

bool may_be_preempted(const Index& index,
                      const PreemptionCandidate& candidate,
                      const QueueKey& waiting) {
  const QueueKey& running = candidate.place;
  if (!candidate.stops) return false;
  if (running.priority != waiting.priority) return running.priority < waiting.priority;
  if (index.policy.order.order == Order::Submission || !candidate.settled) return false;
  return gives_way(index.policy.preemption, running.rank, waiting.rank);
}

/// Whether the GPU of one that would lend it is one for the waiting job.
bool would_help(Index& index, const Job& lender, const Job& waiting) {
  const auto there = index.placements_of(*attempt_of(lender)).front();
  NodeState state = index.ledger.state(there.node);
  vacate(index, {&lender, {}, true}, there.node, state);
  const auto device = static_cast<std::size_t>(there.devices.front());
  return device < state.devices.size() &&
         index.ledger.device_fits(index.demand_of(waiting.spec), state.devices[device]);
}

CandidatesByNode candidates_by_node(Index& index,
                                    const PreemptionCandidates& candidates,
                                    const Job& waiting) {
  CandidatesByNode by_node;
  const QueueKey place = index.place_of(waiting);
  const bool borrows = index.ledger.demand(index.demand_of(waiting.spec)).borrows;
  const auto each_node = [&](JobId id, auto add) {
    for (const auto& placement : index.placements_of(*attempt_of(*index.find(id)))) {
      add(by_node[placement.node]);
    }
  };
  for (const JobId id : candidates.leaving) {
    each_node(id, [id](NodeCandidates& there) { there.stopping.push_back(id); });
  }
  for (const PreemptionCandidate& one : candidates.able) {
    const Job& job = *index.find(one.id);
    const bool lends = borrows && one.lends && !is_lending(job);
    if (!is_still_running(job)) continue;
    const Victim victim{&job,
                        one.place,
                        lends && would_help(index, job, waiting),
                        may_be_preempted(index, one, place)};
    if (!victim.lends && !victim.stops) continue;
    each_node(one.id, [&victim](NodeCandidates& there) { there.victims.push_back(victim); });
  }
  return by_node;
}

std::optional<NodePlan> plan_on(Index& index,
                                DemandIndex demand,
                                NodeIndex node,
                                const NodeCandidates& there) {
  NodePlan plan{.node = node, .state = index.ledger.state(node), .stopping = there.stopping};
  for (const JobId id : there.stopping) take_leave(index, *index.find(id), node, plan.state);
  std::vector<Victim> worst = there.victims;
  std::ranges::sort(worst, [](const Victim& a, const Victim& b) {
    if (a.lends != b.lends) return a.lends;
    return b.place < a.place;
  });
  if (take_victims(index, demand, worst, plan)) return plan;
  // Who lends keeps CPUs and needs host memory, of which there may be too little for the job then.
  if (std::ranges::none_of(worst, &Victim::lends)) return std::nullopt;
  std::erase_if(worst, [](const Victim& one) { return !one.stops; });
  for (Victim& one : worst) one.lends = false;
  std::ranges::sort(worst, [](const Victim& a, const Victim& b) { return b.place < a.place; });
  plan.lending.clear();
  plan.state = index.ledger.state(node);
  for (const JobId id : there.stopping) take_leave(index, *index.find(id), node, plan.state);
  if (!take_victims(index, demand, worst, plan)) return std::nullopt;
  return plan;
}

}  // namespace

PreemptionCandidates preemption_candidates(Index& index) {
  PreemptionCandidates found;
  std::set<JobId> asked = index.lenders;
  asked.insert(index.preemptible.begin(), index.preemptible.end());
  for (const JobId id : asked) {
    const Job& job = *index.find(id);
    if (is_leaving(job)) {
      found.leaving.push_back(id);
    } else if (is_still_running(job)) {
      // One that lends and may only be suspended has nothing more to give but CPUs.
      const bool only_stands = is_lending(job) && job.spec.preemption == Preemption::Suspend;
      const bool stops = index.policy.preempt && index.preemptible.contains(id) && !only_stands;
      const bool lends = may_lend(index, job);
      const bool settled = index.ran(job) >= index.policy.preemption.quantum;
      if (stops || lends) found.able.push_back({id, index.place_of(job), settled, stops, lends});
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
  const CandidatesByNode by_node = candidates_by_node(index, candidates, waiting);
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
    found.lending.insert(found.lending.end(), plan.lending.begin(), plan.lending.end());
  }
  std::ranges::sort(found.lending);
  std::ranges::sort(found.victims);
  found.victims.erase(std::ranges::unique(found.victims).begin(), found.victims.end());
  return found;
}

}  // namespace gflow::engine
