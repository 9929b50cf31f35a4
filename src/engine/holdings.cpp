// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/stop.h"
#include "engine/index.h"
#include "engine/lending.h"
#include "engine/machine_node.h"

/// What active jobs hold: the ledger and the indexes beside it.
namespace gflow::engine {

using placement::NodeIndex;
using placement::Placement;
using placement::Presence;

namespace {

/// After a restart how it stands may not be told yet.
Presence presence_of_lender(const Running& running) {
  if (running.parked.how != Parking::Parked) return Presence::Lending;
  const bool wants_it = running.suspended && running.suspended_by.empty();
  return wants_it ? Presence::Recalled : Presence::Lent;
}

}  // namespace

Presence presence_of(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  if (running == nullptr) return Presence::Working;
  if (running->lends) return presence_of_lender(*running);
  if (running->move) return Presence::Unparking;
  switch (running->parked.how) {
    case Parking::None:
      return running->suspended ? Presence::Suspended : Presence::Working;
    case Parking::Begun:
      return Presence::Parking;
    case Parking::Parked:
      return Presence::Parked;
    case Parking::Ending:
      return Presence::Unparking;
  }
  return Presence::Working;
}

/// Whether it was suspended to make room: not by hand.
bool goes_on_by_itself(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && running->suspended && running->suspended_by.empty();
}

bool holds(const Job& job, const std::string& node, int gpu) {
  if (!is_active(job)) return false;
  return std::ranges::any_of(allocations_of(*attempt_of(job)), [&](const Allocation& part) {
    return part.node == node && std::ranges::find(part.gpus, gpu) != part.gpus.end();
  });
}

PassingDemand::PassingDemand(Index& index, const placement::Demand& demand)
    : index_(index), before_(index.ledger.demands()), demand_(index.ledger.intern(demand)) {}

PassingDemand::~PassingDemand() {
  if (index_.ledger.demands() == before_) return;
  index_.placer->forget_last_demand(index_.ledger);
  index_.ledger.forget_last_demand();
}

placement::DemandIndex Index::demand_of(const JobSpec& spec) {
  return ledger.intern(placement::demand_of(spec));
}

Shape Index::shape_of(const Job& job) {
  const JobSpec& spec = job.spec;
  const auto bound = spec.time_limit ? *spec.time_limit + spec.grace : std::chrono::seconds::zero();
  return {demand_of(spec), bound, gangs.of(job.id)};
}

std::vector<Placement> Index::placements_of(const Attempt& attempt) {
  std::vector<Placement> placements;
  for (const Allocation& part : allocations_of(attempt)) {
    auto node = ledger.find(part.node);
    if (!node) node = ledger.put({.name = part.node, .ready = false});
    placements.push_back({*node, part.gpus});
  }
  return placements;
}

std::vector<JobId> Index::started_on(const std::string& node) const {
  std::vector<JobId> found;
  for (const Status status : kActive.list()) {
    for (const JobId id : in(status)) {
      if (attempt_of(*find(id))->allocation.node == node) found.push_back(id);
    }
  }
  std::ranges::sort(found);
  return found;
}

void Index::link_active(const Job& job, const Attempt& attempt) {
  const placement::DemandIndex demand = demand_of(job.spec);
  for (const Placement& placement : placements_of(attempt)) {
    ledger.take(demand, placement, presence_of(job));
    for (const int gpu : placement.devices) holders[{placement.node, gpu}].insert(job.id);
  }
  for (const Allocation& part : allocations_of(attempt)) {
    for (const int cpu : part.cpus) cpus_taken[*ledger.find(part.node)].insert(cpu);
  }
  if (goes_on_by_itself(job)) suspended.insert({job.submitted, job.id});
  if (job.spec.preemption != Preemption::None) preemptible.insert(job.id);
  if (watches(job)) lenders.insert(job.id);
  fair.hold(job.spec.user.uid, gpu_parts_of(job.spec.request));
  if (const auto end = latest_end(job)) ends.emplace(*end, job.id);
  if (Gang* gang = gangs.find(job.id); gang != nullptr && stop_of(job) == nullptr) ++gang->active;
  if (Group* own = group(job)) {
    ++own->active;
    balance(*own);
  }
}

void Index::unlink_active(const Job& job, const Attempt& attempt) {
  const placement::DemandIndex demand = demand_of(job.spec);
  for (const Placement& placement : placements_of(attempt)) {
    ledger.give_back(demand, placement, presence_of(job));
    for (const int gpu : placement.devices) {
      const auto at = holders.find({placement.node, gpu});
      at->second.erase(job.id);
      if (at->second.empty()) holders.erase(at);
    }
  }
  for (const Allocation& part : allocations_of(attempt)) {
    if (part.cpus.empty()) continue;
    const auto at = cpus_taken.find(*ledger.find(part.node));
    for (const int cpu : part.cpus) at->second.erase(at->second.find(cpu));
    if (at->second.empty()) cpus_taken.erase(at);
  }
  suspended.erase({job.submitted, job.id});
  preemptible.erase(job.id);
  lenders.erase(job.id);
  incumbents.erase(job.id);
  stopping.erase(job.id);
  fair.hold(job.spec.user.uid, -gpu_parts_of(job.spec.request));
  if (const auto end = latest_end(job)) ends.erase({*end, job.id});
  if (Gang* gang = gangs.find(job.id)) {
    if (stop_of(job) == nullptr) --gang->active;
    fronts.open_gang(gangs.of(job.id));  // those that wait may have to start together now
  }
  if (Group* own = group(job)) {
    --own->active;
    balance(*own);
  }
}

Memory Index::reserved_on(const Device& device, const Job& job) const {
  return ledger.reserve_on(placement::demand_of(job.spec.request),
                           device.memory_total.value_or(Memory{}));
}

std::vector<GpuMemoryUse> Index::gpu_memory_of(const Job& job) const {
  std::vector<GpuMemoryUse> uses;
  const Attempt* attempt = attempt_of(job);
  if (attempt == nullptr || !is_active(job)) return uses;
  for (const Allocation& part : allocations_of(*attempt)) {
    const auto node = nodes.find(part.node);
    if (node == nodes.end()) continue;
    for (const Device& device : node->second.machine.devices) {
      if (!std::ranges::binary_search(part.gpus, device.index)) continue;
      const auto use = std::ranges::find(device.uses, job.id.value, &JobUse::job);
      if (use == device.uses.end() || !use->memory) continue;
      uses.push_back({part.node, device.index, *use->memory, reserved_on(device, job)});
    }
  }
  return uses;
}

/// Memory that running jobs use of each device comes with the node; what of it is theirs by
/// declaration is known here.
bool Index::put_node(const NodeRecord& record) {
  const auto declared = [&](const JobUse& use, const Device& device) -> std::optional<Memory> {
    const Job* job = find(JobId(use.job));
    if (job == nullptr || !holds(*job, record.machine.name, device.index)) return std::nullopt;
    return reserved_on(device, *job);
  };
  // Of a node that is removed nothing is left but what jobs still hold there, as after a restart.
  if (record.removed) return put_node(placement::Node{.name = record.machine.name, .ready = false});
  placement::Node node = node_of(record, drains, policy, declared);
  for (const Device& device : record.machine.devices) {
    const SliceRecord* slice = slice_of(*this, record.machine.name, device);
    if (slice == nullptr) continue;
    placement::DeviceFacts& facts = node.devices[static_cast<std::size_t>(device.index)];
    const SliceStage stage = slice->slice.stage;
    if (stage == SliceStage::Removing || stage == SliceStage::Removed) facts.usable = false;
    const Job* waits = slice->slice.job ? find(*slice->slice.job) : nullptr;
    if (waits != nullptr) facts.kept_for = demand_of(waits->spec);
  }
  return put_node(std::move(node));
}

bool Index::put_node(placement::Node node) {
  const auto failing = health.find(node.name);
  node.healthy = failing == health.end() || !is_closed(failing->second, lived());
  const auto known = ledger.find(node.name);
  if (known && ledger.node(*known) == node) return false;
  const auto stands = [&](const auto& of_levels) {
    return known && of_levels.second.stands(*known, node.labels);
  };
  if (!std::ranges::all_of(domains, stands)) forget_domains();
  fronts.node_changed(ledger.put(std::move(node)));
  return true;
}

void Index::put_nodes() {
  for (const auto& [name, record] : nodes) put_node(record);
}

void Index::put_nodes_with_slices() {
  std::set<std::string> names;
  for (const SliceRecord& one : slices) names.insert(one.slice.node);
  for (const std::string& name : names) {
    if (const auto at = nodes.find(name); at != nodes.end()) put_node(at->second);
  }
}

void Index::sort_nodes() {
  const auto moved = ledger.sort();
  if (!moved) return;
  const auto to = [&moved](NodeIndex from) { return (*moved)[static_cast<std::size_t>(from)]; };
  for (auto& [key, held_by] : std::exchange(holders, {})) {
    holders[{to(key.node), key.gpu}] = std::move(held_by);
  }
  for (auto& [node, cpus] : std::exchange(cpus_taken, {})) cpus_taken[to(node)] = std::move(cpus);
  placer->forget();
  domains.clear();
  fronts.open_all();
}

void Index::put_nodes_used_by(JobId id, const Attempt& attempt) {
  const auto used = [id](const Device& device) {
    return std::ranges::find(device.uses, id.value, &JobUse::job) != device.uses.end();
  };
  for (const Allocation& part : allocations_of(attempt)) {
    const auto at = nodes.find(part.node);
    if (at != nodes.end() && std::ranges::any_of(at->second.machine.devices, used)) {
      put_node(at->second);
    }
  }
}

void Index::forget_processes(JobId id, const Attempt& attempt) {
  for (const Allocation& part : allocations_of(attempt)) {
    const auto at = nodes.find(part.node);
    if (at == nodes.end()) continue;
    std::size_t gone = 0;
    for (Device& device : at->second.machine.devices) {
      gone += std::erase_if(device.processes,
                            [id](const DeviceProcess& process) { return process.job == id; });
    }
    if (gone > 0) put_node(at->second);
  }
}

bool Index::forget_removed() {
  bool was_unhealthy = false;
  std::erase_if(removed, [&](const std::string& name) {
    const auto at = ledger.find(name);
    if (!ledger.holds(*at).empty()) return false;
    ledger.remove(*at);
    domains.clear();
    nodes.erase(name);
    was_unhealthy = health.erase(name) > 0 || was_unhealthy;
    count_gpus();
    return true;
  });
  if (ledger.count() > nodes.size()) was_unhealthy = forget_untold() || was_unhealthy;
  return was_unhealthy;
}

/// Nodes of which only a job told, as it held something there.
bool Index::forget_untold() {
  bool was_unhealthy = false;
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    if (!ledger.is_there(node) || nodes.contains(ledger.node(node).name)) continue;
    if (!ledger.holds(node).empty()) continue;
    was_unhealthy = health.erase(ledger.node(node).name) > 0 || was_unhealthy;
    ledger.remove(node);
    domains.clear();
  }
  return was_unhealthy;
}

Totals Index::totals(NodeIndex index) const {
  const placement::Node& node = ledger.node(index);
  const placement::NodeState& state = ledger.state(index);
  Totals totals;
  totals.gpus = static_cast<int>(node.devices.size());
  totals.gpus_free = static_cast<int>(
      std::ranges::count_if(state.devices, [](const placement::DeviceState& device) {
        return device.usable && device.users == 0 && device.suspended == 0 && device.lent == 0;
      }));
  totals.cpus = static_cast<int>(node.milli_cpus / 1000);
  totals.cpus_free = static_cast<int>(std::max<std::int64_t>(0, state.milli_cpus_free) / 1000);
  totals.memory = node.memory;
  totals.memory_free = std::max(Memory{}, state.memory_free);
  return totals;
}

Totals Index::totals() const {
  Totals all;
  for (NodeIndex index = 0; index < ledger.size(); ++index) {
    const Totals one = totals(index);
    all.gpus += one.gpus;
    all.gpus_free += one.gpus_free;
    all.cpus += one.cpus;
    all.cpus_free += one.cpus_free;
    all.memory += one.memory;
    all.memory_free += one.memory_free;
  }
  return all;
}

}  // namespace gflow::engine
