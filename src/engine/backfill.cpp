// SPDX-License-Identifier: Apache-2.0
#include "engine/backfill.h"

#include <algorithm>
#include <utility>

namespace gflow::engine {

using placement::DemandIndex;
using placement::Ledger;
using placement::NodeIndex;
using placement::NodeState;
using placement::Placement;
using placement::Presence;

namespace {

constexpr std::chrono::seconds kForever = std::chrono::years(100);

/// A node that would do for the head.
struct Prospect {
  MonoTime at;  ///< when the head is expected to fit there
  NodeIndex node = 0;

  friend auto operator<=>(const Prospect&, const Prospect&) = default;
};

/// When enough of what runs on the node is gone, if ever.
std::optional<MonoTime> fits_at(Index& index,
                                DemandIndex demand,
                                NodeIndex node,
                                const std::vector<Leaving>& leaving) {
  if (index.ledger.fits(demand, node)) return index.now.mono;
  NodeState state = index.ledger.state(node);
  for (const Leaving& one : leaving) {
    index.ledger.give_back_on(state, one.demand, one.devices, one.presence);
    if (index.ledger.fits_state(demand, node, state)) return one.end;
  }
  return std::nullopt;
}

/// The suspended jobs on the node, if the demand does not fit there when all others that end by
/// then are gone.
std::vector<JobId> needed_gone(Index& index,
                               DemandIndex demand,
                               NodeIndex node,
                               const std::vector<Leaving>& leaving,
                               MonoTime start) {
  NodeState state = index.ledger.state(node);
  std::vector<JobId> suspended;
  for (const Leaving& one : leaving) {
    if (one.presence == Presence::Suspended) {
      suspended.push_back(one.job);
    } else if (one.end <= start) {
      index.ledger.give_back_on(state, one.demand, one.devices, one.presence);
    }
  }
  if (index.ledger.fits_state(demand, node, state)) suspended.clear();
  return suspended;
}

}  // namespace

void without(Index& index, const Job& job, NodeIndex node, NodeState& state) {
  const DemandIndex given = index.demand_of(job.spec);
  for (const Placement& placement : index.placements_of(*attempt_of(job))) {
    if (placement.node != node) continue;
    index.ledger.give_back_on(state, given, placement.devices, presence_of(job));
  }
}

const std::vector<std::vector<Leaving>>& Leavings::by_node(Index& index) {
  if (revision_ == index.revision) return by_node_;
  revision_ = index.revision;
  by_node_.assign(static_cast<std::size_t>(index.ledger.size()), {});
  for (const Status status : kActive.list()) {
    for (const JobId id : index.in(status)) {
      const Job& job = *index.find(id);
      const MonoTime end = std::max(index.expected_end(job), index.now.mono);
      const DemandIndex demand = index.demand_of(job.spec);
      for (Placement& placement : index.placements_of(*attempt_of(job))) {
        by_node_[static_cast<std::size_t>(placement.node)].push_back(
            {end, id, demand, presence_of(job), std::move(placement.devices)});
      }
    }
  }
  for (auto& jobs : by_node_) std::sort(jobs.begin(), jobs.end());
  return by_node_;
}

/// Jobs end when they are expected to, each giving back what it has; devices others use stay as
/// they are.
Reservation reserve(Index& index,
                    Leavings& leavings,
                    JobId head,
                    const std::set<NodeIndex>& taken) {
  const Job& waiting = *index.find(head);
  Reservation kept;
  kept.demand = index.demand_of(waiting.spec);
  kept.priority = waiting.spec.priority;
  kept.head.job = head;

  const Ledger& ledger = index.ledger;
  const auto& leaving = leavings.by_node(index);
  const auto on = [&](NodeIndex node) -> const std::vector<Leaving>& {
    return leaving[static_cast<std::size_t>(node)];
  };
  std::vector<Prospect> prospects;
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    if (!ledger.could_fit(kept.demand, node) || taken.contains(node)) continue;
    if (const auto at = fits_at(index, kept.demand, node, on(node)))
      prospects.push_back({*at, node});
  }
  const auto wanted = static_cast<std::size_t>(ledger.demand(kept.demand).nodes);
  if (prospects.size() < wanted) return kept;
  std::ranges::sort(prospects);
  prospects.resize(wanted);
  const MonoTime start = prospects.back().at;
  kept.head.start = start;
  kept.head.proven = true;
  for (const Prospect& one : prospects) {
    NodeState& state = kept.nodes.emplace(one.node, ledger.state(one.node)).first->second;
    for (const Leaving& gone : on(one.node)) {
      if (gone.end > start) break;
      ledger.give_back_on(state, gone.demand, gone.devices, gone.presence);
      kept.head.proven = kept.head.proven && index.latest_end(*index.find(gone.job)).has_value();
    }
    const auto needed = needed_gone(index, kept.demand, one.node, on(one.node), start);
    kept.needs_gone.insert(needed.begin(), needed.end());
  }
  return kept;
}

/// One that is suspended and not gone by then has its memory there already.
void Reservation::take(const Index& index,
                       const Passer& passer,
                       const Placement& there,
                       NodeState& state) const {
  const DemandIndex passing = passer.shape.demand;
  if (passer.suspended && index.expected_end(*index.find(*passer.suspended)) > head.start) {
    index.ledger.give_back_on(state, passing, there.devices, Presence::Suspended);
  }
  index.ledger.take_on(state, passing, there.devices);
}

bool Reservation::leaves_enough(const Index& index,
                                const Passer& passer,
                                const Placement& there) const {
  const auto at = nodes.find(there.node);
  if (at == nodes.end()) return true;
  NodeState after = at->second;
  take(index, passer, there, after);
  return index.ledger.fits_state(demand, there.node, after);
}

Passage Reservation::passage(const Index& index,
                             const Passer& passer,
                             const std::vector<Placement>& there) const {
  const std::optional<Passage> by_time = passage_by_time(index, passer);
  if (by_time == Passage::InTime) return Passage::InTime;
  const auto leaves = [&](const Placement& placement) {
    return leaves_enough(index, passer, placement);
  };
  if (std::ranges::all_of(there, leaves)) return Passage::FromSpare;
  return by_time.value_or(Passage::Blocked);
}

std::optional<Passage> Reservation::passage_by_time(const Index& index,
                                                    const Passer& passer) const {
  if (!head.start) return Passage::InTime;  // it never starts as things are
  if (needs(passer)) return Passage::InTime;
  const bool overdue = index.is_overdue(*index.find(head.job));
  const bool promised = passer.shape.bound > std::chrono::seconds::zero();
  const bool as_expected = !overdue && (!promised || index.policy.order.order == Order::Learned);
  const auto expected = as_expected ? passer.run_time : kForever;
  const auto bound = promised ? std::min(passer.shape.bound, expected) : expected;
  if (bound <= *head.start - index.now.mono) return Passage::InTime;
  if (against_all && !head.proven && passer.priority >= priority &&
      index.is_patient(*index.find(head.job))) {
    return Passage::Patient;
  }
  return std::nullopt;
}

void Reservation::take_spare(const Index& index,
                             const Passer& passer,
                             const std::vector<Placement>& there) {
  for (const Placement& placement : there) {
    const auto at = nodes.find(placement.node);
    if (at != nodes.end()) take(index, passer, placement, at->second);
  }
}

/// Whether its user would hold more of GPUs than may be, if all his jobs start whose places are
/// kept: places for two of which only one may run keep GPUs idle.
bool Places::is_over_limit(const Index& index, const Job& job) const {
  std::int64_t wanted = gpu_parts_of(job.spec.request);
  if (wanted == 0 || index.policy.gpu_quota.none()) return false;
  std::set<JobId> counted{job.id};
  for (const Reservation& kept : kept_) {
    const Job& head = *index.find(kept.head.job);
    if (head.spec.user.uid != job.spec.user.uid || !counted.insert(head.id).second) continue;
    wanted += gpu_parts_of(head.spec.request);
  }
  return wanted > index.gpu_limit_left(job.spec.user.uid);
}

bool Places::has_one_at_limit(const Index& index) const {
  return std::ranges::any_of(kept_, [&index](const Reservation& kept) {
    return index.is_at_user_limit(index.find(kept.head.job)->spec);
  });
}

void Places::block(Index& index, JobId job) {
  if (!first_) first_ = job;
  if (keep_against_all(index, job)) {
    if (!head_) head_ = kept_.back().head;
  } else if (blocked_.size() < kMaxOutranking) {
    blocked_.push_back(job);
  }
}

bool Places::could_keep_one_more(const Index& index) const {
  return against_all_ < (index.policy.order.order == Order::Submission ? 1 : kMaxAgainstAll);
}

/// A job that waited not long yet keeps its place only if limits prove when it will start, and it
/// wants several nodes: these do not become free together by themselves.
bool Places::keep_against_all(Index& index, JobId id) {
  const Job& job = *index.find(id);
  if (!could_keep_one_more(index) || is_over_limit(index, job)) return false;
  const bool waited = index.keeps_reservation(job);
  if (!waited) {
    const bool makes_room = index.is_stoppable(job);
    if (job.spec.request.nodes == 1 || makes_room || index.ends.empty()) return false;
    if (++tried_ > kMaxAgainstAll) return false;
  }
  Reservation kept = reserve(index, leavings_, id, nodes_against_all());
  if (!waited && !(kept.head.start && kept.head.proven)) return false;
  kept_.push_back(std::move(kept));
  ++against_all_;
  return true;
}

std::set<NodeIndex> Places::nodes_against_all() const {
  std::set<NodeIndex> nodes;
  for (const Reservation& kept : kept_) {
    if (!kept.against_all) continue;
    for (const auto& [node, state] : kept.nodes) nodes.insert(node);
  }
  return nodes;
}

/// Jobs come in the order of the queue, so that all that are blocked so far have as high a priority
/// or a higher one.
void Places::keep_outranking(Index& index, int priority) {
  const auto outranks = [&](JobId id) { return index.find(id)->spec.priority > priority; };
  for (const JobId id : blocked_) {
    if (!outranks(id) || is_over_limit(index, *index.find(id))) continue;
    kept_.push_back(reserve(index, leavings_, id, {}));
    kept_.back().against_all = false;
  }
  std::erase_if(blocked_, outranks);
}

/// The first in the queue of those that can start only when the job has gone on and ended.
std::optional<QueueKey> Places::needed_by(const Index& index, const Passer& passer) const {
  std::optional<QueueKey> first;
  for (const Reservation& reservation : kept_) {
    if (!reservation.needs(passer)) continue;
    const QueueKey place = index.place_of(*index.find(reservation.head.job));
    if (!first || place < *first) first = place;
  }
  return first;
}

bool Places::let_pass(Index& index, const Passer& passer, const std::vector<Placement>& there) {
  keep_outranking(index, passer.priority);
  const std::optional<QueueKey> needed = needed_by(index, passer);
  const auto is_behind = [&](const Reservation& reservation) {
    return needed && *needed < index.place_of(*index.find(reservation.head.job));
  };
  std::vector<Reservation*> spare;
  for (Reservation& reservation : kept_) {
    if (!reservation.concerns(passer) || is_behind(reservation)) continue;
    const Passage passage = reservation.passage(index, passer, there);
    if (passage == Passage::Blocked) return false;
    if (passage == Passage::FromSpare) spare.push_back(&reservation);
  }
  for (Reservation* reservation : spare) reservation->take_spare(index, passer, there);
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
