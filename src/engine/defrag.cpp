// SPDX-License-Identifier: Apache-2.0
#include "engine/defrag.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace gflow::engine {

using placement::Demand;
using placement::DemandIndex;
using placement::DeviceState;
using placement::NodeIndex;
using placement::NodeState;
using placement::Placement;

namespace {

std::size_t at(NodeIndex node) { return static_cast<std::size_t>(node); }

template <typename Value>
bool is_in(const std::vector<Value>& values, const Value& value) {
  return std::ranges::find(values, value) != values.end();
}

bool may_move(const Index& index, const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && !running->stop && !running->suspended && !running->lends &&
         !running->move && job.spec.preemption == Preemption::Requeue &&
         index.gangs.of(job.id) == kNoGang;
}

std::int64_t free_parts(const NodeState& state) {
  std::int64_t parts = 0;
  for (const DeviceState& device : state.devices) parts += device.usable ? device.free.parts : 0;
  return parts;
}

/// What of the devices that a demand wants is free, whichever pieces it lies in.
struct FreeInAll {
  std::int64_t parts = 0;
  Memory gpu_memory{};
  std::int64_t milli_cpus = 0;
  Memory memory{};
  bool knows_memory = true;  ///< of every one of those devices
};

void add(const placement::Ledger& ledger,
         DemandIndex demand,
         const NodeState& state,
         FreeInAll& sum) {
  sum.milli_cpus += std::max<std::int64_t>(state.milli_cpus_free, 0);
  sum.memory += std::max(state.memory_free, Memory{});
  for (const DeviceState& device : state.devices) {
    if (!device.usable || !ledger.accepts(demand, device.model)) continue;
    sum.parts += device.free.parts;
    sum.gpu_memory += std::max(device.memory_free, Memory{});
    sum.knows_memory = sum.knows_memory && device.memory != Memory{};
  }
}

}  // namespace

Defrag::Defrag(Index& index, Now now) : index_(index), ledger_(index.ledger), now_(now) {
  const auto is_open = [&](const Placement& part) { return ledger_.state(part.node).open; };
  for (const JobId id : index.preemptible) {
    const Job& job = *index.find(id);
    if (!may_move(index, job)) continue;
    Movable movable{.id = id, .demand = index.demand_of(job.spec)};
    movable.there = index.placements_of(*attempt_of(job));
    if (!std::ranges::all_of(movable.there, is_open)) continue;
    movable.ran = std::chrono::floor<std::chrono::seconds>(run_time_of(job, now.mono));
    movable.parts = gpu_parts_of(job.spec.request);
    for (const Placement& part : movable.there) by_node_[part.node].push_back(movables_.size());
    movables_.push_back(std::move(movable));
  }
  for (NodeIndex node = 0; node < ledger_.size(); ++node) nodes_.push_back(ledger_.state(node));
  for (auto& [node, there] : by_node_) {
    std::ranges::stable_sort(there, {}, [this](std::size_t one) { return cost_of({one}); });
  }
}

bool Defrag::fits(DemandIndex demand, NodeIndex node, const NodeState& state) {
  ++looks_;
  return ledger_.fits_state(demand, node, state);
}

/// The nodes that have room for it before anybody moves.
const std::set<NodeIndex>& Defrag::roomy(DemandIndex demand) {
  const auto [entry, is_new] = roomy_.try_emplace(demand);
  for (NodeIndex node = 0; is_new && node < ledger_.size(); ++node) {
    if (fits(demand, node, nodes_[at(node)])) entry->second.insert(node);
  }
  return entry->second;
}

NodeState& Defrag::changed(States& states, NodeIndex node) const {
  return states.try_emplace(node, nodes_[at(node)]).first->second;
}

void Defrag::stop(std::size_t movable, States& states) const {
  const Movable& job = movables_[movable];
  for (const Placement& part : job.there) {
    ledger_.give_back_on(changed(states, part.node), job.demand, part.devices);
  }
}

/// The node once these have stopped.
NodeState Defrag::without(NodeIndex node, const Set& set) const {
  States states;
  NodeState& state = changed(states, node);
  for (const std::size_t one : set) stop(one, states);
  return std::move(state);
}

Defrag::Cost Defrag::cost_of(const Set& set) const {
  Cost cost{.moves = set.size()};
  for (const std::size_t one : set) {
    const Movable& job = movables_[one];
    cost.lost += job.ran.count() * job.parts;
    cost.ran += job.ran.count();
  }
  return cost;
}

/// Those that may still be moved from there, the cheapest first.
Defrag::Set Defrag::movables_on(NodeIndex node, const Set& stopped) const {
  Set found;
  const auto there = by_node_.find(node);
  if (there == by_node_.end()) return found;
  for (const std::size_t one : there->second) {
    if (found.size() == kMaxMovables) break;
    if (movables_[one].is_moved || is_in(stopped, one)) continue;
    if (!only_ || is_in(*only_, one)) found.push_back(one);
  }
  return found;
}

/// One that makes enough room alone is not the only one: another beside it may have to give its
/// room to it.
void Defrag::add_small_sets(DemandIndex demand,
                            NodeIndex node,
                            const Set& there,
                            std::vector<Candidate>& found) {
  const auto add = [&](Set set) {
    if (!may_look() || !fits(demand, node, without(node, set))) return;
    std::ranges::sort(set);
    found.push_back({cost_of(set), node, std::move(set)});
  };
  for (std::size_t i = 0; i < there.size(); ++i) {
    add({there[i]});
    for (std::size_t j = 0; j < i; ++j) add({there[j], there[i]});
  }
}

/// Of the devices that the demand cannot have yet, the one that costs least to clear for it: those
/// who stop for that. Empty if there is none.
Defrag::Set Defrag::cheapest_device(DemandIndex demand,
                                    const Set& there,
                                    NodeIndex node,
                                    const NodeState& state) {
  std::optional<std::pair<Cost, Set>> best;
  for (std::size_t device = 0; device < state.devices.size(); ++device) {
    if (ledger_.device_fits(demand, state.devices[device])) continue;
    ++looks_;
    States states = {{node, state}};
    Set stopped;
    for (const std::size_t one : there) {
      const auto part = std::ranges::find(movables_[one].there, node, &Placement::node);
      if (!is_in(part->devices, static_cast<int>(device))) continue;
      stop(one, states);
      stopped.push_back(one);
      if (!ledger_.device_fits(demand, states.at(node).devices[device])) continue;
      auto found = std::pair(cost_of(stopped), std::move(stopped));
      if (!best || found < *best) best = std::move(found);
      break;
    }
  }
  return best ? std::move(best->second) : Set{};
}

/// Device by device, and where these are enough whoever costs least; then without those that are
/// not needed after all, the dearest first. Empty if it does not fit even so.
Defrag::Set Defrag::clear(DemandIndex demand, NodeIndex node, const Set& there) {
  const auto wanted = static_cast<std::ptrdiff_t>(ledger_.demand(demand).gpus);
  Set left = there;
  Set taken;
  NodeState state = nodes_[at(node)];
  while (!fits(demand, node, state)) {
    const auto suits = [&](const DeviceState& one) { return ledger_.device_fits(demand, one); };
    Set next;
    if (std::ranges::count_if(state.devices, suits) < wanted) {
      next = cheapest_device(demand, left, node, state);
    } else if (!left.empty()) {
      next = {left.front()};
    }
    if (next.empty() || !may_look()) return {};
    std::erase_if(left, [&](std::size_t one) { return is_in(next, one); });
    std::ranges::copy(next, std::back_inserter(taken));
    state = without(node, taken);
  }
  std::ranges::stable_sort(taken, {}, [this](std::size_t one) { return cost_of({one}); });
  for (std::size_t i = taken.size(); i-- > 0;) {
    Set fewer = taken;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (fits(demand, node, without(node, fewer))) taken = std::move(fewer);
  }
  return taken;
}

/// What may be tried so that one more node fits, the cheapest first.
std::vector<Defrag::Candidate> Defrag::candidates(DemandIndex demand,
                                                  const std::vector<NodeIndex>& targets,
                                                  const Set& stopped) {
  std::vector<Candidate> found;
  for (const auto& [node, all] : by_node_) {
    if (!may_look()) break;
    if (is_in(targets, node)) continue;
    const Set there = movables_on(node, stopped);
    if (there.empty() || !fits(demand, node, without(node, there))) continue;
    add_small_sets(demand, node, there, found);
    Set larger = clear(demand, node, there);
    if (larger.size() < 3) continue;
    std::ranges::sort(larger);
    found.push_back({cost_of(larger), node, std::move(larger)});
  }
  std::ranges::sort(found);
  return found;
}

/// Devices of a node for who waits: first those that nobody who moves could have, then those that
/// one could share, then the others. REQUIRES: it fits.
std::vector<int> Defrag::devices_for(DemandIndex demand,
                                     const NodeState& state,
                                     const Set& set) const {
  std::vector<std::pair<int, int>> ranked;
  for (std::size_t device = 0; device < state.devices.size(); ++device) {
    if (!ledger_.device_fits(demand, state.devices[device])) continue;
    const int index = static_cast<int>(device);
    NodeState after = state;
    ledger_.take_on(after, demand, {index});
    int rank = 0;
    for (const std::size_t one : set) {
      if (!ledger_.device_fits(movables_[one].demand, state.devices[device])) continue;
      const bool can_share = ledger_.device_fits(movables_[one].demand, after.devices[device]);
      rank = std::max(rank, can_share ? 1 : 2);
    }
    ranked.emplace_back(rank, index);
  }
  std::ranges::sort(ranked);
  ranked.resize(static_cast<std::size_t>(ledger_.demand(demand).gpus));
  std::vector<int> devices;
  for (const auto& [rank, index] : ranked) devices.push_back(index);
  std::ranges::sort(devices);
  return devices;
}

/// Where somebody who moves starts again: on the nodes that have least left, so that what is whole
/// stays whole. Empty if they are too few.
Defrag::Room Defrag::room_for(DemandIndex demand, const States& states) {
  const auto wanted = static_cast<std::size_t>(ledger_.demand(demand).nodes);
  std::vector<std::pair<std::int64_t, NodeIndex>> ranked;
  for (const NodeIndex node : roomy(demand)) {
    if (!states.contains(node)) ranked.emplace_back(free_parts(nodes_[at(node)]), node);
  }
  for (const auto& [node, state] : states) {
    if (fits(demand, node, state)) ranked.emplace_back(free_parts(state), node);
  }
  Room room;
  if (ranked.size() < wanted) return room;
  std::ranges::sort(ranked);
  for (std::size_t i = 0; i < wanted; ++i) {
    const NodeIndex node = ranked[i].second;
    const auto state = states.find(node);
    const NodeState& as = state == states.end() ? nodes_[at(node)] : state->second;
    room.push_back({node, ledger_.first_devices(demand, as)});
  }
  return room;
}

std::optional<Defrag::Trial> Defrag::try_in_order(DemandIndex demand,
                                                  const std::vector<NodeIndex>& targets,
                                                  const Set& order) {
  Trial trial;
  for (const std::size_t one : order) stop(one, trial.nodes);
  for (const NodeIndex node : targets) {
    NodeState& state = changed(trial.nodes, node);
    if (!fits(demand, node, state)) return std::nullopt;
    Placement there{node, devices_for(demand, state, order)};
    ledger_.take_on(state, demand, there.devices);
    trial.to.push_back(std::move(there));
  }
  for (const std::size_t one : order) {
    const Movable& job = movables_[one];
    Room room = room_for(job.demand, trial.nodes);
    if (room.empty()) return std::nullopt;
    for (const Placement& part : room) {
      ledger_.take_on(changed(trial.nodes, part.node), job.demand, part.devices);
    }
    if (room == job.there) continue;  // it need not move
    trial.set.push_back(one);
    trial.places.push_back(std::move(room));
  }
  return trial;
}

/// Two in either order, more of them the largest first.
std::optional<Defrag::Trial> Defrag::try_set(DemandIndex demand,
                                             const std::vector<NodeIndex>& targets,
                                             const Set& set) {
  Set order = set;
  std::ranges::stable_sort(
      order, std::ranges::greater{}, [this](std::size_t one) { return movables_[one].parts; });
  auto trial = try_in_order(demand, targets, order);
  if (trial || order.size() != 2) return trial;
  std::swap(order.front(), order.back());
  return try_in_order(demand, targets, order);
}

/// The cheapest moves after which it fits; nothing if there are none, or it was looked at enough.
std::optional<Defrag::Trial> Defrag::search(DemandIndex demand) {
  const auto wanted = static_cast<std::size_t>(ledger_.demand(demand).nodes);
  const std::set<NodeIndex>& fitting = roomy(demand);
  std::vector<NodeIndex> targets(fitting.begin(), fitting.end());
  if (targets.size() > wanted) targets.resize(wanted);
  Set stopped;
  std::optional<Trial> trial = try_set(demand, targets, stopped);
  while (trial && targets.size() < wanted) {
    std::optional<Trial> next;
    for (const Candidate& one : candidates(demand, targets, stopped)) {
      if (!may_look()) break;
      std::vector<NodeIndex> more = targets;
      more.push_back(one.node);
      Set all = stopped;
      std::ranges::copy(one.set, std::back_inserter(all));
      next = try_set(demand, more, all);
      if (!next) continue;
      targets = std::move(more);
      stopped = std::move(all);
      break;
    }
    trial = std::move(next);
  }
  return trial;
}

bool Defrag::is_enough_free(DemandIndex demand, int jobs) const {
  const Demand& wanted = ledger_.demand(demand);
  FreeInAll sum;
  for (NodeIndex node = 0; node < ledger_.size(); ++node) {
    const NodeState& state = nodes_[at(node)];
    if (state.open && ledger_.selects(demand, node)) add(ledger_, demand, state, sum);
  }
  const auto nodes = std::int64_t{wanted.nodes} * jobs;
  const auto devices = nodes * wanted.gpus;
  return sum.parts >= devices * wanted.share.parts && sum.milli_cpus >= nodes * wanted.milli_cpus &&
         sum.memory.bytes >= nodes * wanted.memory.bytes &&
         (!sum.knows_memory || sum.gpu_memory.bytes >= devices * wanted.gpu_memory.bytes);
}

DefragOutcome Defrag::why_not(DemandIndex demand) const {
  if (!may_look()) return DefragOutcome::NotSearched;
  if (!is_enough_free(demand)) return DefragOutcome::NotEnoughFree;
  return is_any_movable_for(demand) ? DefragOutcome::NoMoveHelps : DefragOutcome::NothingMovable;
}

bool Defrag::is_any_movable_for(DemandIndex demand) const {
  return std::ranges::any_of(by_node_, [&](const auto& node_and_movables) {
    const NodeIndex node = node_and_movables.first;
    return ledger_.could_fit(demand, node) && !movables_on(node, {}).empty();
  });
}

std::vector<Allocation> Defrag::named(const Room& room) const {
  std::vector<Allocation> parts;
  for (const Placement& part : room) {
    parts.push_back({.node = ledger_.node(part.node).name, .gpus = part.devices, .cpus = {}});
  }
  return parts;
}

/// On the copy: those who come after begin there.
void Defrag::carry_out(const Trial& trial, DefragPlan& plan) {
  plan.outcome = DefragOutcome::Moves;
  plan.to = named(trial.to);
  for (std::size_t i = 0; i < trial.set.size(); ++i) {
    Movable& moved = movables_[trial.set[i]];
    plan.moves.push_back({.job = moved.id,
                          .from = named(moved.there),
                          .to = named(trial.places[i]),
                          .lost_time = moved.ran});
    moved.is_moved = true;
  }
  std::ranges::sort(plan.moves, {}, &DefragMove::job);
  for (const auto& [node, state] : trial.nodes) nodes_[at(node)] = state;
  roomy_.clear();
  in_vain_.clear();
}

/// Where all of a gang have to be in one domain nothing is searched: moves would be found that free
/// room here and there.
bool Defrag::is_bound_to_domain(const Waiting& job) const {
  const Gang* gang = index_.gangs.find(job.job);
  return gang != nullptr && gang->near.required > 0;
}

DefragPlan Defrag::plan(const Waiting& job) {
  const std::vector<Member> members = members_with(job);
  return members.empty() ? plan_alone(job) : plan_together(job, members);
}

DefragPlan Defrag::plan_alone(const Waiting& job) {
  DefragPlan plan{.job = job.job};
  const DemandIndex demand = job.shape.demand;
  const auto wanted = static_cast<std::size_t>(ledger_.demand(demand).nodes);
  std::size_t fitting = 0;
  for (NodeIndex node = 0; node < ledger_.size(); ++node) {
    if (ledger_.fits(demand, node)) ++fitting;
  }
  const bool waits_for_gang = index_.gangs.start(job.shape.gang) == GangStart::NotYet;
  const bool is_at_limit = job.shape.gang == kNoGang && job.needs_more;
  if (waits_for_gang || is_at_limit || index_.is_at_limit(*index_.find(job.job))) {
    plan.outcome = DefragOutcome::WaitsForMore;
  } else if (is_bound_to_domain(job)) {
    plan.outcome = DefragOutcome::NotSearched;
  } else if (fitting >= wanted) {
    plan.outcome = DefragOutcome::HasRoom;
  } else if (const auto known = in_vain_.find(demand); known != in_vain_.end()) {
    plan.outcome = known->second;
  } else if (!may_look()) {
    plan.outcome = DefragOutcome::NotSearched;
  } else if (const auto trial = search(demand)) {
    carry_out(*trial, plan);
  } else {
    plan.outcome = why_not(demand);
    in_vain_.emplace(demand, plan.outcome);
  }
  return plan;
}

bool Defrag::would_start(DemandIndex demand, const Set& set) {
  const auto wanted = static_cast<std::size_t>(ledger_.demand(demand).nodes);
  std::vector<NodeIndex> targets(roomy(demand).begin(), roomy(demand).end());
  for (const auto& [node, there] : by_node_) {
    if (!is_in(targets, node) && fits(demand, node, without(node, set))) targets.push_back(node);
  }
  if (targets.size() < wanted) return false;
  targets.resize(wanted);
  const auto trial = try_set(demand, targets, set);
  return trial && trial->set.size() == set.size();
}

bool Defrag::would_start(const Waiting& job, const std::vector<JobId>& moves) {
  if (is_bound_to_domain(job)) return false;
  if (std::ranges::adjacent_find(moves) != moves.end()) return false;
  Set set;
  for (const JobId id : moves) {
    const auto movable = std::ranges::find(movables_, id, &Movable::id);
    if (movable == movables_.end()) return false;
    set.push_back(static_cast<std::size_t>(movable - movables_.begin()));
  }
  const std::vector<Member> members = members_with(job);
  const auto starts = [&](const Set& these) {
    return members.empty() ? would_start(job.shape.demand, these)
                           : would_start_together(members, these);
  };
  const auto is_needed = [&](std::size_t one) {
    Set rest = set;
    std::erase(rest, one);
    return !starts(rest);
  };
  return starts(set) && std::ranges::all_of(set, is_needed);
}

/// A job that stays where it is in the queue may keep those behind it from what is made free.
std::vector<DefragPlan> Defrag::run(const std::vector<Waiting>& waiting) {
  std::vector<DefragPlan> plans;
  std::vector<const Waiting*> staying;
  for (const Waiting& job : waiting) {
    DefragPlan& plan = plans.emplace_back(this->plan(job));
    const auto is_kept_from = [&](const Waiting* ahead) {
      return ahead->keeps_from <= now_.mono || ahead->key.priority > job.key.priority;
    };
    if (plan.outcome == DefragOutcome::Moves) {
      const auto ahead = std::ranges::find_if(staying, is_kept_from);
      plan.is_behind = ahead != staying.end();
      if (plan.is_behind) plan.behind = (*ahead)->job;
    } else if (plan.outcome != DefragOutcome::WaitsForMore) {
      staying.push_back(&job);
    }
  }
  return plans;
}

std::vector<DefragPlan> State::defrag(std::size_t most, Now now) const {
  Index& index = *index_;
  return Defrag(index, now).run(first_for_moves(index, most));
}

}  // namespace gflow::engine
