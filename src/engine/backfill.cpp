// SPDX-License-Identifier: Apache-2.0
#include "engine/backfill.h"

#include <algorithm>
#include <utility>

#include "engine/gathering.h"

namespace gflow::engine {

using placement::DemandIndex;
using placement::Ledger;
using placement::NodeIndex;
using placement::NodeState;
using placement::Placement;

namespace {

constexpr std::chrono::seconds kForever = std::chrono::years(100);

/// A node that would do for the head, or for one job of it if it is a gang.
struct Prospect {
  MonoTime at;  ///< when that is expected to fit there
  NodeIndex node = 0;
  DemandIndex demand = 0;
  std::int64_t missing = 0;  ///< parts of GPUs that are given back on the node until then

  friend auto operator<=>(const Prospect&, const Prospect&) = default;
};
/// Jobs of a gang, by what they want.
using WantedJobs = std::map<DemandIndex, std::size_t>;
using LeavingByNode = std::vector<std::vector<Leaving>>;

/// Of GPUs; of one that has none it counts that it is there.
std::int64_t parts_given_back(const Ledger& ledger, const Leaving& one) {
  const std::int64_t of_each = ledger.demand(one.demand).share.parts;
  return std::max<std::int64_t>(static_cast<std::int64_t>(one.devices.size()) * of_each, 1);
}

/// When enough of what runs on the node is gone, if ever.
std::optional<Prospect> fits_at(Index& index,
                                DemandIndex demand,
                                NodeIndex node,
                                const std::vector<Leaving>& leaving) {
  Prospect found{index.now.mono, node, demand};
  if (index.ledger.fits(demand, node)) return found;
  NodeState state = index.ledger.state(node);
  for (const Leaving& one : leaving) {
    index.ledger.give_back_on(state, one.demand, one.devices, one.presence);
    found.at = one.end;
    found.missing += parts_given_back(index.ledger, one);
    if (index.ledger.fits_state(demand, node, state)) return found;
  }
  return std::nullopt;
}

/// The nodes of an area that are not taken.
std::vector<NodeIndex> nodes_left(const Ledger& ledger,
                                  Area area,
                                  const std::set<NodeIndex>& taken) {
  std::vector<NodeIndex> nodes;
  if (area != nullptr) nodes = *area;
  for (NodeIndex node = 0; area == nullptr && node < ledger.size(); ++node) nodes.push_back(node);
  std::erase_if(nodes, [&taken](NodeIndex node) { return taken.contains(node); });
  return nodes;
}

/// The nodes a job would have: those where it fits soonest. Empty if there are too few.
std::vector<Prospect> prospects_of(Index& index,
                                   const Job& job,
                                   const LeavingByNode& leaving,
                                   const std::vector<NodeIndex>& nodes) {
  const Ledger& ledger = index.ledger;
  const DemandIndex demand = index.demand_of(job.spec);
  std::vector<Prospect> prospects;
  for (const NodeIndex node : nodes) {
    if (!ledger.could_fit(demand, node)) continue;
    const auto at = fits_at(index, demand, node, leaving[static_cast<std::size_t>(node)]);
    if (at) prospects.push_back(*at);
  }
  const auto wanted = static_cast<std::size_t>(ledger.demand(demand).nodes);
  if (prospects.size() < wanted) return {};
  std::ranges::sort(prospects);
  prospects.resize(wanted);
  return prospects;
}

/// What a node will have as those leave that run there, while jobs of a gang are put there.
class Outlook {
 public:
  Outlook(const Index& index, NodeIndex node, const std::vector<Leaving>& leaving)
      : index_(index), node_(node), leaving_(leaving), state_(index.ledger.state(node)) {}

  /// When one more of these fits, if ever.
  std::optional<Prospect> next(DemandIndex demand) {
    while (!index_.ledger.fits_state(demand, node_, state_)) {
      if (gone_ == leaving_.size()) return std::nullopt;
      const Leaving& one = leaving_[gone_++];
      index_.ledger.give_back_on(state_, one.demand, one.devices, one.presence);
      at_ = std::max(at_, one.end);
      missing_ += parts_given_back(index_.ledger, one);
    }
    return Prospect{at_, node_, demand, missing_};
  }
  /// REQUIRES: it fits.
  void put(DemandIndex demand) {
    index_.ledger.take_on(state_, demand, index_.ledger.first_devices(demand, state_));
  }

 private:
  const Index& index_;
  NodeIndex node_;
  const std::vector<Leaving>& leaving_;
  NodeState state_;
  std::size_t gone_ = 0;
  MonoTime at_ = index_.now.mono;
  std::int64_t missing_ = 0;
};

/// Those of a gang that start together, the first in the queue.
WantedJobs wanted_of(Index& index, const Gang& gang) {
  WantedJobs wanted;
  std::size_t needed = gang.needed();
  for (const QueueKey& key : gang.waiting) {
    if (needed-- == 0) break;
    ++wanted[index.demand_of(index.find(key.id)->spec)];
  }
  return wanted;
}

/// Whether these nodes have as many GPUs as they want, free or not.
bool has_capacity(const Ledger& ledger,
                  const WantedJobs& wanted,
                  const std::vector<NodeIndex>& nodes) {
  std::int64_t needed = 0;
  for (const auto& [demand, count] : wanted) {
    const placement::Demand& each = ledger.demand(demand);
    needed += static_cast<std::int64_t>(count) * each.gpus * each.share.parts;
  }
  for (const NodeIndex node : nodes) {
    if (needed <= 0) break;
    needed -= static_cast<std::int64_t>(ledger.state(node).devices.size()) * Share::kWholeParts;
  }
  return needed <= 0;
}

/// Where those would go, each where it fits soonest. Empty if they never do.
std::vector<Prospect> prospects_of(Index& index,
                                   const WantedJobs& wanted,
                                   const LeavingByNode& leaving,
                                   const std::vector<NodeIndex>& nodes) {
  if (!has_capacity(index.ledger, wanted, nodes)) return {};
  std::map<NodeIndex, Outlook> outlooks;
  for (const NodeIndex node : nodes) {
    outlooks.try_emplace(node, index, node, leaving[static_cast<std::size_t>(node)]);
  }
  std::vector<Prospect> prospects;
  for (const auto& [demand, count] : wanted) {
    std::set<Prospect> next;
    const auto look_at = [&](NodeIndex node) {
      if (const auto found = outlooks.at(node).next(demand)) next.insert(*found);
    };
    for (const auto& [node, outlook] : outlooks) {
      if (index.ledger.could_fit(demand, node)) look_at(node);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (next.empty()) return {};
      prospects.push_back(*next.begin());
      next.erase(next.begin());
      outlooks.at(prospects.back().node).put(demand);
      look_at(prospects.back().node);
    }
  }
  return prospects;
}

/// Where a job would go, or its gang that starts together.
struct Way {
  std::vector<Prospect> prospects{};  ///< empty: nowhere
  Area area = nullptr;                ///< among these nodes alone
  std::int64_t missing = 0;           ///< parts of GPUs that are given back until then
  MonoTime start{};
};

Way way_among(std::vector<Prospect> prospects, Area area) {
  Way way{.prospects = std::move(prospects), .area = area};
  std::map<NodeIndex, std::int64_t> missing;
  for (const Prospect& one : way.prospects) {
    missing[one.node] = std::max(missing[one.node], one.missing);
    way.start = std::max(way.start, one.at);
  }
  for (const auto& [node, parts] : missing) way.missing += parts;
  return way;
}

/// Whether the place of its gang was kept there in the round before, or in this one.
bool is_kept_in(const Index& index, const Gang* gang, Area area) {
  if (gang == nullptr || !gang->kept || area == nullptr) return false;
  if (gang->kept->round + 1 < index.rounds) return false;
  const auto node = index.ledger.find(gang->kept->domain.node);
  return node && std::ranges::binary_search(*area, *node);
}

/// Of a gang that has to be in one domain in that in which least is missing; of these where it
/// starts soonest. When jobs end is hardly known, and a place that is kept now here and now there
/// never gets free: it stays where it is until less is missing elsewhere than ever was there.
Way way_of(Index& index,
           const Job& job,
           const LeavingByNode& leaving,
           const std::set<NodeIndex>& taken) {
  const Gang* together = index.gang_to_start(job);
  const Gang* gang = index.gangs.find(job.id);
  const WantedJobs wanted = together == nullptr ? WantedJobs{} : wanted_of(index, *together);
  Way best;
  Way stays;
  for (const Area area : areas_required(index, gang)) {
    const std::vector<NodeIndex> nodes = nodes_left(index.ledger, area, taken);
    Way way = way_among(together == nullptr ? prospects_of(index, job, leaving, nodes)
                                            : prospects_of(index, wanted, leaving, nodes),
                        area);
    if (way.prospects.empty()) continue;
    if (is_kept_in(index, gang, area)) {
      way.missing = std::min(way.missing, gang->kept->missing);
      stays = way;
    }
    const bool is_better = best.prospects.empty() ||
                           std::pair(way.missing, way.start) < std::pair(best.missing, best.start);
    if (is_better) best = std::move(way);
  }
  return stays.prospects.empty() || best.missing < stays.missing ? best : stays;
}

/// The suspended jobs on the node, if what is to go there does not fit when all others that end by
/// then are gone.
std::vector<JobId> needed_gone(Index& index,
                               const KeptNode& kept,
                               NodeIndex node,
                               const std::vector<Leaving>& leaving,
                               MonoTime start) {
  NodeState state = index.ledger.state(node);
  std::vector<JobId> suspended;
  for (const Leaving& one : leaving) {
    if (!works(one.presence)) {
      suspended.push_back(one.job);
    } else if (one.end <= start) {
      index.ledger.give_back_on(state, one.demand, one.devices, one.presence);
    }
  }
  if (suspended.empty() || kept.takes_all(index.ledger, node, std::move(state))) return {};
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

/// The last part is only looked for: nothing is put there after it.
bool KeptNode::takes_all(const Ledger& ledger, NodeIndex node, NodeState as) const {
  for (const DemandIndex& part : parts) {
    if (!ledger.fits_state(part, node, as)) return false;
    if (&part != &parts.back()) ledger.take_on(as, part, ledger.first_devices(part, as));
  }
  return true;
}

namespace {

/// Jobs end when they are expected to, each giving back what it has; devices others use stay as
/// they are.
Reservation reserve_there(Index& index,
                          const LeavingByNode& leaving,
                          JobId head,
                          const std::vector<Prospect>& prospects) {
  Reservation kept;
  kept.priority = index.find(head)->spec.priority;
  kept.head.job = head;
  if (prospects.empty()) return kept;
  const MonoTime start = std::ranges::max_element(prospects)->at;
  kept.head.start = start;
  kept.head.proven = true;
  for (const Prospect& one : prospects) {
    const auto at = kept.nodes.try_emplace(one.node, KeptNode{index.ledger.state(one.node)}).first;
    at->second.parts.push_back(one.demand);
  }
  for (auto& [node, kept_node] : kept.nodes) {
    const auto& on_node = leaving[static_cast<std::size_t>(node)];
    for (const Leaving& gone : on_node) {
      if (gone.end > start) break;
      index.ledger.give_back_on(kept_node.state, gone.demand, gone.devices, gone.presence);
      const Job& job = *index.find(gone.job);
      if (index.promised_end(job)) continue;
      kept.head.proven = false;
      kept.head.known = kept.head.known && index.knows_like(index.contender_of(job).signature);
    }
    const auto needed = needed_gone(index, kept_node, node, on_node, start);
    kept.needs_gone.insert(needed.begin(), needed.end());
  }
  return kept;
}

}  // namespace

Reservation reserve(Index& index,
                    Leavings& leavings,
                    JobId head,
                    const std::set<NodeIndex>& taken) {
  const LeavingByNode& leaving = leavings.by_node(index);
  const Way way = way_of(index, *index.find(head), leaving, taken);
  Reservation kept = reserve_there(index, leaving, head, way.prospects);
  if (way.area != nullptr) {
    kept.domain = index.ledger.node(way.area->front()).name;
    kept.missing = way.missing;
  }
  return kept;
}

/// Those who move for it are gone then, and nobody else is. It counts as if it could start now, so
/// that nobody passes it by being quick, and none in its patience.
std::optional<Reservation> keep_made_room(Index& index, Leavings& leavings, JobId head) {
  if (!index.is_room_made(head)) return std::nullopt;
  const auto& moving = std::get<Queued>(index.find(head)->state).victims;
  LeavingByNode leaving = leavings.by_node(index);
  for (auto& there : leaving) {
    std::erase_if(there,
                  [&](const Leaving& one) { return !std::ranges::binary_search(moving, one.job); });
  }
  const Job& waiting = *index.find(head);
  const std::vector<Prospect> prospects = way_of(index, waiting, leaving, {}).prospects;
  if (prospects.empty()) return std::nullopt;
  Reservation kept;
  kept.priority = waiting.spec.priority;
  kept.head = {head, index.now.mono, true};
  for (const Prospect& one : prospects) {
    const auto at = kept.nodes.try_emplace(one.node, KeptNode{index.ledger.state(one.node)}).first;
    at->second.parts.push_back(one.demand);
  }
  for (auto& [node, kept_node] : kept.nodes) {
    for (const Leaving& gone : leaving[static_cast<std::size_t>(node)]) {
      index.ledger.give_back_on(kept_node.state, gone.demand, gone.devices, gone.presence);
    }
  }
  return kept;
}

/// One that is suspended and not gone by then has its memory there already, of the GPU or the host.
void Reservation::take(const Index& index,
                       const Passer& passer,
                       const Placement& there,
                       NodeState& state) const {
  const DemandIndex passing = passer.shape.demand;
  const Job* suspended = passer.suspended ? index.find(*passer.suspended) : nullptr;
  if (suspended != nullptr && index.expected_end(*suspended) > head.start) {
    index.ledger.give_back_on(state, passing, there.devices, presence_of(*suspended));
  }
  index.ledger.take_on(state, passing, there.devices);
}

/// One that goes on holds what it has already.
bool Reservation::is_voided_by(const Index& index, const Passer& passer) const {
  if (!is_being_made || passer.suspended || passer.parts == 0) return false;
  const Job& waiting = *index.find(head.job);
  return waiting.spec.user.uid == passer.uid &&
         passer.parts + index.parts_to_start(waiting) > index.gpu_limit_left(passer.uid);
}

bool Reservation::leaves_enough(const Index& index,
                                const Passer& passer,
                                const Placement& there) const {
  const auto at = nodes.find(there.node);
  if (at == nodes.end()) return true;
  NodeState after = at->second.state;
  take(index, passer, there, after);
  return at->second.takes_all(index.ledger, there.node, std::move(after));
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
    if (at != nodes.end()) take(index, passer, placement, at->second.state);
  }
}

/// Whether its user would hold more of GPUs than may be, if all his jobs start whose places are
/// kept: places for two of which only one may run keep GPUs idle.
bool Places::is_over_limit(const Index& index, const Job& job) const {
  std::int64_t wanted = index.parts_to_start(job);
  if (wanted == 0 || index.policy.gpu_quota.none()) return false;
  std::set<JobId> counted{job.id};
  for (const Reservation& kept : kept_) {
    const Job& head = *index.find(kept.head.job);
    if (head.spec.user.uid != job.spec.user.uid || !counted.insert(head.id).second) continue;
    wanted += index.parts_to_start(head);
  }
  return wanted > index.gpu_limit_left(job.spec.user.uid);
}

bool Places::has_one_at_limit(const Index& index) const {
  return std::ranges::any_of(kept_, [&index](const Reservation& kept) {
    return index.is_at_limit(*index.find(kept.head.job));
  });
}

void Places::block(Index& index, JobId job) {
  if (index.gang_to_start(*index.find(job)) != nullptr &&
      !gangs_.insert(index.gangs.of(job)).second) {
    return;
  }
  if (!first_) first_ = job;
  if (auto made = keep_made_room(index, leavings_, job)) {
    kept_.push_back(*std::move(made));
    if (!head_) head_ = kept_.back().head;
  } else if (keep_against_all(index, job)) {
    if (!head_) head_ = kept_.back().head;
  } else if (hopeless_ != job && blocked_.size() < kMaxOutranking) {
    blocked_.push_back(job);
  }
}

bool Places::could_keep_one_more(const Index& index) const {
  return against_all_ < max_against_all(index.policy);
}

/// A job that waited not long yet keeps its place only if limits prove when it will start, and it
/// wants several nodes: these do not become free together by themselves.
bool Places::keep_against_all(Index& index, JobId id) {
  const Job& job = *index.find(id);
  if (!could_keep_one_more(index) || is_over_limit(index, job)) return false;
  const bool waited = index.keeps_reservation(job);
  if (!waited) {
    const bool makes_room = index.is_stoppable(job);
    const bool is_wide = job.spec.request.nodes > 1 || index.gang_to_start(job) != nullptr;
    if (!is_wide || makes_room || index.ends.empty()) return false;
    if (++tried_ > kMaxAgainstAll) return false;
  }
  Reservation kept = reserve(index, leavings_, id, nodes_against_all());
  if (!kept.head.start && index.gang_to_start(job) != nullptr) {  // it is larger than all there is
    hopeless_ = id;
    return false;
  }
  if (!waited && !(kept.head.start && kept.head.proven)) return false;
  if (Gang* gang = index.gangs.find(id); gang != nullptr && !kept.domain.empty()) {
    gang->kept = {{gang->near.required - 1, kept.domain}, kept.missing, index.rounds};
  }
  kept_.push_back(std::move(kept));
  ++against_all_;
  return true;
}

/// Of a gang of which none runs any more nobody has to come back anywhere.
void Places::keep_paused(Index& index) {
  std::map<GangNumber, WantedJobs> paused;
  std::map<GangNumber, JobId> first;
  for (const auto& [until, id] : index.backoff) {
    const Gang* gang = index.gangs.find(id);
    if (gang == nullptr || gang->near.required == 0 || gang->active == 0) continue;
    first.try_emplace(index.gangs.of(id), id);
    ++paused[index.gangs.of(id)][index.demand_of(index.find(id)->spec)];
  }
  for (const auto& [number, wanted] : paused) {
    const std::vector<Area> home = areas_required(index, index.gangs.get(number));
    if (home.size() != 1) continue;
    const LeavingByNode& leaving = leavings_.by_node(index);
    const auto nodes = nodes_left(index.ledger, home.front(), nodes_against_all());
    const auto there = prospects_of(index, wanted, leaving, nodes);
    if (!there.empty()) keep(reserve_there(index, leaving, first.at(number), there));
  }
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
    if (reservation.is_voided_by(index, passer)) return false;
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
