// SPDX-License-Identifier: Apache-2.0
#include "engine/backfill.h"

#include <algorithm>
#include <tuple>

namespace gflow::engine {

using placement::DemandIndex;
using placement::Ledger;
using placement::NodeIndex;
using placement::NodeState;
using placement::Placement;
using placement::Presence;
using placement::Shortfall;

namespace {

/// The nodes the head fits on now, which only matters for a job that wants several.
std::map<NodeIndex, NodeState> fitting_now(const Ledger& ledger, DemandIndex demand) {
  std::map<NodeIndex, NodeState> fitting;
  const auto wanted = static_cast<std::size_t>(ledger.demand(demand).nodes);
  if (wanted == 1) return fitting;
  for (NodeIndex node = 0; node < ledger.size() && fitting.size() < wanted; ++node) {
    if (ledger.fits(demand, node)) fitting.emplace(node, ledger.state(node));
  }
  return fitting;
}

/// Whether more is missing after than before. Devices the head could not use anyway are not missed.
bool worse(const Shortfall& after, const Shortfall& before) {
  return after.devices > before.devices || after.milli_cpus > before.milli_cpus ||
         after.memory > before.memory;
}

/// The devices of a node that are left to drain for the head: as many as it wants of those that
/// would do, the ones with the least on them.
std::vector<int> awaited(const Ledger& ledger, DemandIndex demand, const NodeState& state) {
  const placement::Demand& wanted = ledger.demand(demand);
  using Load = std::tuple<int, std::int32_t, int>;
  std::vector<Load> loads;
  for (std::size_t i = 0; i < state.devices.size(); ++i) {
    const placement::DeviceState& device = state.devices[i];
    if (!device.usable || !ledger.accepts(demand, device.model)) continue;
    if (device.memory < ledger.reserve_on(wanted, device.memory)) continue;
    loads.emplace_back(device.users + device.standing, -device.free.parts, static_cast<int>(i));
  }
  std::ranges::sort(loads);
  loads.resize(std::min(loads.size(), static_cast<std::size_t>(wanted.gpus)));
  std::vector<int> devices;
  for (const Load& load : loads) devices.push_back(std::get<2>(load));
  return devices;
}

}  // namespace

void without(Index& index, const Job& job, NodeIndex node, NodeState& state) {
  const auto* running = std::get_if<Running>(&job.state);
  const bool stands = running != nullptr && running->suspended;
  const DemandIndex given = index.demand_of(job.spec);
  for (const Placement& placement : index.placements_of(*attempt_of(job))) {
    if (placement.node != node) continue;
    index.ledger.give_back_on(
        state, given, placement.devices, stands ? Presence::Standing : Presence::Working);
  }
}

/// Jobs end in the order of their limits, each giving back what it has; devices others use stay as
/// they are. The head starts once it fits on as many nodes as it asked for.
Reservation reserve(Index& index, JobId head) {
  Reservation kept;
  kept.demand = index.demand_of(index.find(head)->spec);
  kept.head.job = head;
  const bool same = index.head && index.head->job == head;
  kept.head.since = same ? index.head->since : index.now.mono;

  const Ledger& ledger = index.ledger;
  const auto wanted = static_cast<std::size_t>(ledger.demand(kept.demand).nodes);
  std::map<NodeIndex, NodeState> fitting = fitting_now(ledger, kept.demand);
  std::map<NodeIndex, NodeState> later;
  for (const auto& [end, id] : index.ends) {
    const Job& job = *index.find(id);
    for (const Placement& placement : index.placements_of(*attempt_of(job))) {
      NodeState& state =
          later.try_emplace(placement.node, ledger.state(placement.node)).first->second;
      without(index, job, placement.node, state);
      if (!ledger.fits_state(kept.demand, placement.node, state)) continue;
      fitting.insert_or_assign(placement.node, state);
    }
    if (fitting.size() < wanted) continue;
    kept.head.start = std::max(end, index.now.mono);
    while (fitting.size() > wanted) fitting.erase(std::prev(fitting.end()));
    kept.nodes = std::move(fitting);
    return kept;
  }
  return kept;
}

/// Proven: the node kept for the head still has room for it at its start. Not proven: nothing the
/// head waits for gets scarcer, and nothing new comes onto the devices that drain for it.
bool Reservation::leaves_enough(const Index& index,
                                DemandIndex passing,
                                const Placement& there) const {
  const Ledger& ledger = index.ledger;
  if (head.start) {
    const auto at = nodes.find(there.node);
    if (at == nodes.end()) return true;
    NodeState after = at->second;
    ledger.take_on(after, passing, there.devices);
    return ledger.fits_state(demand, there.node, after);
  }
  if (!ledger.could_fit(demand, there.node)) return true;
  NodeState after = ledger.state(there.node);
  const Shortfall before = ledger.shortfall_state(demand, there.node, after);
  const std::vector<int> drain = awaited(ledger, demand, after);
  if (before.devices > 0 && std::ranges::find_first_of(drain, there.devices) != drain.end()) {
    return false;
  }
  ledger.take_on(after, passing, there.devices);
  return !worse(ledger.shortfall_state(demand, there.node, after), before);
}

Passage Reservation::passage(const Index& index,
                             const Shape& shape,
                             const std::vector<Placement>& there) const {
  const std::optional<Passage> by_time = passage_by_time(index, shape);
  if (by_time == Passage::InTime) return Passage::InTime;
  const auto leaves = [&](const Placement& placement) {
    return leaves_enough(index, shape.demand, placement);
  };
  if (std::ranges::all_of(there, leaves)) return Passage::FromSpare;
  return by_time.value_or(Passage::Blocked);
}

std::optional<Passage> Reservation::passage_by_time(const Index& index, const Shape& shape) const {
  const bool ends = shape.bound > std::chrono::seconds::zero();
  if (head.start && ends && index.now.mono + shape.bound <= *head.start) return Passage::InTime;
  const bool patient = index.now.mono - head.since <= index.policy.backfill_patience;
  if (!head.start && patient) return Passage::Unproven;
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

void Places::keep_head(Index& index, JobId job) {
  if (!first) first = job;
  if (head || !index.keeps_place(*index.find(job))) return;
  kept.push_back(reserve(index, job));
  head = kept.back().head;
}

bool Places::let_pass(const Index& index, const Shape& shape, const std::vector<Placement>& there) {
  std::vector<Reservation*> spare;
  for (Reservation& reservation : kept) {
    const Passage passage = reservation.passage(index, shape, there);
    if (passage == Passage::Blocked) return false;
    if (passage == Passage::FromSpare) spare.push_back(&reservation);
  }
  for (Reservation* reservation : spare) reservation->take_spare(index, shape.demand, there);
  return true;
}

bool Places::would_let_pass(const Index& index,
                            const Shape& shape,
                            const std::map<NodeIndex, NodeState>& on) const {
  return std::ranges::all_of(kept, [&](const Reservation& reservation) {
    if (reservation.passage_by_time(index, shape)) return true;
    return std::ranges::none_of(on, [&](const auto& entry) {
      if (reservation.head.start) return reservation.nodes.contains(entry.first);
      return index.ledger.could_fit(reservation.demand, entry.first);
    });
  });
}

std::vector<NodeIndex> Places::node_list() const {
  std::vector<NodeIndex> list;
  for (const Reservation& reservation : kept) {
    for (const auto& [node, state] : reservation.nodes) list.push_back(node);
  }
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
  return list;
}

}  // namespace gflow::engine
