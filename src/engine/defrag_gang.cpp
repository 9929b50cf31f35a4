// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "engine/defrag.h"

/// Moves for jobs that start together: where they all go is found one after the other, on nodes_ as
/// they are then.
namespace gflow::engine {

using placement::DemandIndex;
using placement::NodeState;
using placement::Placement;

namespace {

/// More of them are not looked at: each may take a look at every node.
constexpr std::size_t kMaxMembers = 512;

std::int64_t parts_wanted(const placement::Ledger& ledger, const std::map<DemandIndex, int>& jobs) {
  std::int64_t parts = 0;
  for (const auto& [index, count] : jobs) {
    const placement::Demand& demand = ledger.demand(index);
    parts += std::int64_t{count} * demand.gpus * demand.share.parts;
  }
  return parts;
}

/// Whoever may have it.
std::int64_t parts_free(const std::vector<NodeState>& nodes) {
  std::int64_t parts = 0;
  for (const NodeState& node : nodes) {
    for (const auto& device : node.devices) {
      if (node.open && device.usable) parts += device.free.parts;
    }
  }
  return parts;
}

}  // namespace

/// As many as have to start at once, in the order of the queue; none if it starts alone, or not
/// before there are more of them.
std::vector<Defrag::Member> Defrag::members_with(const Waiting& job) const {
  std::vector<Member> members;
  const Gang* gang = index_.gang_to_start(*index_.find(job.job));
  if (gang == nullptr) return members;
  for (const QueueKey& key : gang->waiting) {
    if (members.size() == gang->needed()) break;
    members.push_back({key.id, index_.demand_of(index_.find(key.id)->spec)});
  }
  return members;
}

/// Those nodes are so for all that comes next. Returns how they were.
Defrag::States Defrag::put(const States& states) {
  States before;
  for (const auto& [node, state] : states) {
    NodeState& now = nodes_[static_cast<std::size_t>(node)];
    before.emplace(node, std::exchange(now, state));
    for (auto& [demand, there] : roomy_) {
      if (fits(demand, node, now)) {
        there.insert(node);
      } else {
        there.erase(node);
      }
    }
  }
  return before;
}

/// All that stopped have room elsewhere, the largest first, two in either order: who has to go
/// where. Nothing if they have not.
std::optional<Defrag::Trial> Defrag::moved_away(const Trial& trial) {
  Set order = trial.set;
  std::ranges::stable_sort(
      order, std::ranges::greater{}, [this](std::size_t one) { return movables_[one].parts; });
  const auto try_order = [&]() -> std::optional<Trial> {
    Trial moved;
    for (const std::size_t one : order) {
      const Movable& job = movables_[one];
      Room room = room_for(job.demand, moved.nodes);
      if (room.empty()) return std::nullopt;
      for (const auto& part : room) {
        ledger_.take_on(changed(moved.nodes, part.node), job.demand, part.devices);
      }
      if (room == job.there) continue;  // it need not move
      moved.set.push_back(one);
      moved.places.push_back(std::move(room));
    }
    return moved;
  };
  auto moved = try_order();
  if (moved || order.size() != 2) return moved;
  std::swap(order.front(), order.back());
  return try_order();
}

/// What was placed last is so from now on, if all that stop have room elsewhere all the same.
bool Defrag::commit(Trial part, Trial& trial) {
  const States before = put(part.nodes);
  Trial next = trial;
  std::ranges::copy(part.to, std::back_inserter(next.to));
  std::ranges::copy(part.set, std::back_inserter(next.set));
  for (auto& [node, state] : part.nodes) next.nodes.insert_or_assign(node, std::move(state));
  if (!moved_away(next)) {
    (void)put(before);
    return false;
  }
  trial = std::move(next);
  return true;
}

/// The next of them on the node where the cheapest stop.
bool Defrag::place_beside_moves(DemandIndex demand, Trial& trial) {
  for (const Candidate& one : candidates(demand, {}, trial.set)) {
    if (!may_look()) return false;
    Trial part;
    for (const std::size_t movable : one.set) stop(movable, part.nodes);
    Set all = trial.set;
    std::ranges::copy(one.set, std::back_inserter(all));
    NodeState& state = changed(part.nodes, one.node);
    part.to.push_back({one.node, devices_for(demand, state, all)});
    ledger_.take_on(state, demand, part.to.front().devices);
    part.set = one.set;
    if (commit(std::move(part), trial)) return true;
  }
  return false;
}

bool Defrag::place(DemandIndex demand, Trial& trial) {
  Trial part;
  part.to = room_for(demand, {});
  if (part.to.empty()) return place_beside_moves(demand, trial);
  const Placement& there = part.to.front();
  ledger_.take_on(changed(part.nodes, there.node), demand, there.devices);
  // Where that is the room of who moved for another, one more has to move.
  return commit(std::move(part), trial) || place_beside_moves(demand, trial);
}

/// The moves after which there is room for all of them; none where there is as it is.
std::optional<Defrag::Trial> Defrag::search_together(const std::vector<Member>& members) {
  const auto nodes = nodes_;
  const auto roomy = roomy_;
  Trial trial;
  const bool is_placed = std::ranges::all_of(
      members, [&](const Member& one) { return may_look() && place(one.demand, trial); });
  auto moved = is_placed ? moved_away(trial) : std::nullopt;
  nodes_ = nodes;
  roomy_ = roomy;
  if (!moved) return std::nullopt;
  for (auto& [node, state] : moved->nodes) trial.nodes.insert_or_assign(node, std::move(state));
  trial.set = std::move(moved->set);
  trial.places = std::move(moved->places);
  return trial;
}

DefragOutcome Defrag::why_not_together(const std::vector<Member>& members) const {
  if (!may_look()) return DefragOutcome::NotSearched;
  std::map<DemandIndex, int> alike;
  for (const Member& one : members) ++alike[one.demand];
  const auto is_short = [this](const auto& one) { return !is_enough_free(one.first, one.second); };
  const bool is_too_much = parts_wanted(ledger_, alike) > parts_free(nodes_);
  if (is_too_much || std::ranges::any_of(alike, is_short)) return DefragOutcome::NotEnoughFree;
  const bool is_any =
      std::ranges::any_of(alike, [this](const auto& one) { return is_any_movable_for(one.first); });
  return is_any ? DefragOutcome::NoMoveHelps : DefragOutcome::NothingMovable;
}

DefragPlan Defrag::plan_together(const Waiting& job, const std::vector<Member>& members) {
  DefragPlan plan{.job = members.front().job};
  for (std::size_t i = 1; i < members.size(); ++i) plan.together.push_back({members[i].job});
  const bool is_wide = std::ranges::any_of(
      members, [this](const Member& one) { return ledger_.demand(one.demand).nodes > 1; });
  if (index_.is_at_limit(*index_.find(job.job))) {
    plan.outcome = DefragOutcome::WaitsForMore;
  } else if (is_wide || is_bound_to_domain(job) || members.size() > kMaxMembers || !may_look()) {
    plan.outcome = DefragOutcome::NotSearched;
  } else if (auto trial = search_together(members); !trial) {
    plan.outcome = why_not_together(members);
  } else if (trial->set.empty() && std::ranges::none_of(movables_, &Movable::is_moved)) {
    plan.outcome = DefragOutcome::HasRoom;
  } else {
    const Room to = trial->to;
    trial->to.resize(1);
    carry_out(*trial, plan);
    for (std::size_t i = 1; i < to.size(); ++i) plan.together[i - 1].to = named({to[i]});
  }
  return plan;
}

bool Defrag::would_start_together(const std::vector<Member>& members, const Set& set) {
  only_ = set;
  auto trial = search_together(members);
  only_.reset();
  if (!trial) return false;
  Set needed = trial->set;
  std::ranges::sort(needed);
  Set asked = set;
  std::ranges::sort(asked);
  return needed == asked;
}

std::vector<Waiting> first_for_moves(Index& index, std::size_t most) {
  std::vector<Waiting> first;
  for (std::size_t looked = most; most > 0; looked *= 2) {
    first = first_waiting(index, looked);
    const bool is_all = first.size() < looked;
    std::set<GangNumber> gangs;
    std::erase_if(first, [&](const Waiting& job) {
      return index.gang_to_start(*index.find(job.job)) != nullptr &&
             !gangs.insert(job.shape.gang).second;
    });
    if (is_all || first.size() >= most) break;
  }
  if (first.size() > most) first.resize(most);
  return first;
}

}  // namespace gflow::engine
