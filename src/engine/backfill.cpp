// SPDX-License-Identifier: Apache-2.0
#include "engine/backfill.h"

#include <algorithm>
#include <compare>
#include <tuple>

namespace gflow::engine {

using placement::DemandIndex;
using placement::Ledger;
using placement::NodeIndex;
using placement::NodeState;
using placement::Placement;
using placement::Presence;

namespace {

/// An active job on a node, by when it is expected to be gone.
struct Leaving {
  MonoTime end;
  JobId job;

  friend auto operator<=>(const Leaving&, const Leaving&) = default;
};

std::map<NodeIndex, std::vector<Leaving>> leaving_by_node(Index& index) {
  std::map<NodeIndex, std::vector<Leaving>> leaving;
  for (const Status status : kActive.list()) {
    for (const JobId id : index.in(status)) {
      const Job& job = *index.find(id);
      const MonoTime end = std::max(index.expected_end(job), index.now.mono);
      for (const Placement& placement : index.placements_of(*attempt_of(job))) {
        leaving[placement.node].push_back({end, id});
      }
    }
  }
  for (auto& [node, jobs] : leaving) std::ranges::sort(jobs);
  return leaving;
}

/// A node that would do for the head.
struct Prospect {
  int missing = 0;  ///< devices
  MonoTime at;      ///< when the head is expected to fit there
  NodeIndex node = 0;
};

/// When enough of what runs on the node is gone, if ever.
std::optional<MonoTime> fits_at(Index& index,
                                DemandIndex demand,
                                NodeIndex node,
                                const std::vector<Leaving>& leaving) {
  if (index.ledger.fits(demand, node)) return index.now.mono;
  NodeState state = index.ledger.state(node);
  for (const Leaving& one : leaving) {
    without(index, *index.find(one.job), node, state);
    if (index.ledger.fits_state(demand, node, state)) return one.end;
  }
  return std::nullopt;
}

bool is_suspended(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && running->suspended;
}

/// The suspended jobs on the node, if the demand does not fit there when all others are gone.
std::vector<JobId> needed_gone(Index& index,
                               DemandIndex demand,
                               NodeIndex node,
                               const std::vector<Leaving>& leaving) {
  NodeState state = index.ledger.state(node);
  std::vector<JobId> suspended;
  for (const Leaving& one : leaving) {
    const Job& job = *index.find(one.job);
    if (is_suspended(job)) {
      suspended.push_back(one.job);
    } else {
      without(index, job, node, state);
    }
  }
  if (index.ledger.fits_state(demand, node, state)) suspended.clear();
  return suspended;
}

}  // namespace

void without(Index& index, const Job& job, NodeIndex node, NodeState& state) {
  const bool suspended = is_suspended(job);
  const DemandIndex given = index.demand_of(job.spec);
  for (const Placement& placement : index.placements_of(*attempt_of(job))) {
    if (placement.node != node) continue;
    index.ledger.give_back_on(
        state, given, placement.devices, suspended ? Presence::Suspended : Presence::Working);
  }
}

/// Jobs end when they are expected to, each giving back what it has; devices others use stay as
/// they are. A head that is overdue gets the nodes where the fewest devices are missing:
/// as nothing new comes onto these, they stay the same until it starts.
Reservation reserve(Index& index, JobId head) {
  const Job& waiting = *index.find(head);
  Reservation kept;
  kept.demand = index.demand_of(waiting.spec);
  kept.priority = waiting.spec.priority;
  kept.head.job = head;

  const Ledger& ledger = index.ledger;
  auto leaving = leaving_by_node(index);
  std::vector<Prospect> prospects;
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    if (!ledger.could_fit(kept.demand, node)) continue;
    const auto at = fits_at(index, kept.demand, node, leaving[node]);
    if (at) prospects.push_back({ledger.shortfall(kept.demand, node).devices, *at, node});
  }
  const auto wanted = static_cast<std::size_t>(ledger.demand(kept.demand).nodes);
  if (prospects.size() < wanted) return kept;
  const bool overdue = index.is_overdue(waiting);
  std::ranges::sort(prospects, [overdue](const Prospect& a, const Prospect& b) {
    if (overdue && a.missing != b.missing) return a.missing < b.missing;
    return std::tie(a.at, a.node) < std::tie(b.at, b.node);
  });
  prospects.resize(wanted);
  const MonoTime start = std::ranges::max(prospects, {}, &Prospect::at).at;
  kept.head.start = start;
  kept.head.proven = true;
  for (const Prospect& one : prospects) {
    NodeState& state = kept.nodes.emplace(one.node, ledger.state(one.node)).first->second;
    for (const Leaving& gone : leaving[one.node]) {
      if (gone.end > start) break;
      const Job& job = *index.find(gone.job);
      without(index, job, one.node, state);
      kept.head.proven = kept.head.proven && index.latest_end(job).has_value();
    }
    const auto needed = needed_gone(index, kept.demand, one.node, leaving[one.node]);
    kept.needs_gone.insert(needed.begin(), needed.end());
  }
  return kept;
}

bool Reservation::leaves_enough(const Index& index,
                                DemandIndex passing,
                                const Placement& there) const {
  const auto at = nodes.find(there.node);
  if (at == nodes.end()) return true;
  NodeState after = at->second;
  index.ledger.take_on(after, passing, there.devices);
  return index.ledger.fits_state(demand, there.node, after);
}

Passage Reservation::passage(const Index& index,
                             const Passer& passer,
                             const std::vector<Placement>& there) const {
  const std::optional<Passage> by_time = passage_by_time(index, passer);
  if (by_time == Passage::InTime) return Passage::InTime;
  const auto leaves = [&](const Placement& placement) {
    return leaves_enough(index, passer.shape.demand, placement);
  };
  if (std::ranges::all_of(there, leaves)) return Passage::FromSpare;
  return by_time.value_or(Passage::Blocked);
}

std::optional<Passage> Reservation::passage_by_time(const Index& index,
                                                    const Passer& passer) const {
  if (!head.start) return Passage::InTime;  // it never starts as things are
  if (passer.suspended && needs_gone.contains(*passer.suspended)) return Passage::InTime;
  const bool overdue = index.is_overdue(*index.find(head.job));
  const bool promised = passer.shape.bound > std::chrono::seconds::zero();
  const auto bound = promised ? passer.shape.bound : passer.run_time;
  if ((promised || !overdue) && index.now.mono + bound <= *head.start) return Passage::InTime;
  if (against_all && !head.proven && passer.priority >= priority &&
      index.is_patient(*index.find(head.job))) {
    return Passage::Patient;
  }
  return std::nullopt;
}

void Reservation::take_spare(const Index& index,
                             DemandIndex passing,
                             const std::vector<Placement>& there) {
  for (const Placement& placement : there) {
    const auto at = nodes.find(placement.node);
    if (at != nodes.end()) index.ledger.take_on(at->second, passing, placement.devices);
  }
}

void Places::block(Index& index, JobId job) {
  if (!first_) first_ = job;
  if (!head_ && index.keeps_place(*index.find(job))) {
    kept_.push_back(reserve(index, job));
    head_ = kept_.back().head;
  } else if (blocked_.size() < kMaxOutranking) {
    blocked_.push_back(job);
  }
}

/// Jobs come in the order of the queue, so that all that are blocked so far have as high a priority
/// or a higher one.
void Places::keep_outranking(Index& index, int priority) {
  const auto outranks = [&](JobId id) { return index.find(id)->spec.priority > priority; };
  for (const JobId id : blocked_) {
    if (!outranks(id)) continue;
    kept_.push_back(reserve(index, id));
    kept_.back().against_all = false;
  }
  std::erase_if(blocked_, outranks);
}

bool Places::let_pass(Index& index, const Passer& passer, const std::vector<Placement>& there) {
  keep_outranking(index, passer.priority);
  std::vector<Reservation*> spare;
  for (Reservation& reservation : kept_) {
    if (!reservation.concerns(passer)) continue;
    const Passage passage = reservation.passage(index, passer, there);
    if (passage == Passage::Blocked) return false;
    if (passage == Passage::FromSpare) spare.push_back(&reservation);
  }
  for (Reservation* reservation : spare) reservation->take_spare(index, passer.shape.demand, there);
  return true;
}

bool Places::would_let_pass(Index& index,
                            const Passer& passer,
                            const std::map<NodeIndex, NodeState>& on) {
  keep_outranking(index, passer.priority);
  return std::ranges::all_of(kept_, [&](const Reservation& reservation) {
    if (!reservation.concerns(passer) || reservation.passage_by_time(index, passer)) return true;
    return std::ranges::none_of(
        on, [&](const auto& entry) { return reservation.nodes.contains(entry.first); });
  });
}

std::vector<NodeIndex> Places::nodes_kept(const Passer& passer) const {
  std::vector<NodeIndex> list;
  for (const Reservation& reservation : kept_) {
    if (!reservation.concerns(passer)) continue;
    for (const auto& [node, state] : reservation.nodes) list.push_back(node);
  }
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
  return list;
}

}  // namespace gflow::engine
