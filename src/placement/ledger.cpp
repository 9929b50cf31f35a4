// SPDX-License-Identifier: Apache-2.0
#include "placement/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/machine.h"

namespace gflow::placement {
namespace {

// How many changes are remembered at least, and at most.
constexpr std::size_t kLeastChanges = 1 << 15;
constexpr std::size_t kMaxChanges = 1 << 16;

/// What the driver keeps on a device for the processes of a job, beyond what they asked for.
constexpr Memory kOfDriver = Memory::gib(1);

bool contains_all(const std::vector<Label>& labels, const std::vector<Label>& wanted) {
  return std::ranges::includes(labels, wanted);
}

/// Whether the mode of those on the device lets this one join them.
bool mode_allows(const Demand& demand, const DeviceState& device, const SharingRules& rules) {
  if (device.users == 0) return true;
  if (demand.mode == GpuMode::Whole || device.mode == GpuMode::Whole) return false;
  if (device.users >= rules.max_jobs) return false;
  if (demand.mode == GpuMode::TimeSlice && device.time_sliced >= rules.max_time_sliced)
    return false;
  return demand.mode == device.mode || rules.mix_modes;
}

/// Compute that the demand takes out of what is free: time-sliced jobs take none from each other.
Share share_held(const Demand& demand) {
  return demand.mode == GpuMode::TimeSlice ? Share{} : demand.share;
}

/// What that share of a device has of its memory, in whole KiB.
Memory memory_part(Share share, Memory device) {
  // Devices have less than 2^40 KiB, so the product stays far below 2^63.
  return Memory{((device.bytes >> 10) * share.parts / Share::kWholeParts) << 10};
}

/// Whether it is given the memory that goes with its share.
bool memory_follows_share(const Demand& demand) {
  return demand.gpu_memory == Memory{} && demand.mode == GpuMode::Fraction;
}

const Topology& topology_of(const Node& node) {
  static const Topology unknown;
  return node.topology ? *node.topology : unknown;
}

/// Whether who lends it keeps the demand off it.
bool is_kept(const Demand& wanted, const DeviceState& device) {
  return device.withheld > 0 || (device.lent > 0 && !wanted.borrows);
}

}  // namespace

bool operator==(const Node& a, const Node& b) {
  const auto plain = [](const Node& node) {
    return std::tie(node.name,
                    node.labels,
                    node.milli_cpus,
                    node.memory,
                    node.devices,
                    node.ready,
                    node.drained,
                    node.healthy);
  };
  return plain(a) == plain(b) && (a.topology == b.topology || topology_of(a) == topology_of(b));
}

ModelIndex Ledger::model(const DeviceFacts& facts) {
  const auto found = std::ranges::find_if(models_, [&facts](const Model& model) {
    return model.vendor == facts.vendor && model.name == facts.model;
  });
  if (found != models_.end()) return static_cast<ModelIndex>(found - models_.begin());
  models_.push_back({facts.vendor, facts.model});
  for (Interned& interned : demands_) {
    interned.accepts.push_back(wants(*interned.demand, facts.vendor, facts.model) ? 1 : 0);
  }
  return models() - 1;
}

DemandIndex Ledger::intern(const Demand& demand) {
  if (const auto found = by_demand_.find(demand); found != by_demand_.end()) return found->second;
  Interned interned;
  interned.demand = std::make_shared<const Demand>(demand);
  for (const Model& model : models_) {
    interned.accepts.push_back(wants(demand, model.vendor, model.name) ? 1 : 0);
  }
  interned.part = by_part_.emplace(scored_part(demand), demands()).first->second;
  demands_.push_back(std::move(interned));
  by_demand_.emplace(demand, demands() - 1);
  return demands() - 1;
}

void Ledger::forget_last_demand() {
  by_demand_.erase(*demands_.back().demand);
  if (demands_.back().part == demands() - 1) by_part_.erase(scored_part(*demands_.back().demand));
  demands_.pop_back();
}

/// The state from the facts and all that is held, from nothing.
NodeState Ledger::state_from(NodeIndex index) {
  const Node& facts = node(index);
  NodeState state;
  state.milli_cpus_free = facts.milli_cpus;
  state.memory_free = facts.memory;
  state.open = facts.ready && !facts.drained && facts.healthy;
  for (const DeviceFacts& device : facts.devices) {
    state.devices.push_back({.memory_free = device.memory - device.memory_lost,
                             .model = model(device),
                             .usable = device.usable,
                             .kept_for = device.kept_for,
                             .memory = device.memory,
                             .memory_shared = device.memory - device.memory_kept});
  }
  for (const Hold& hold : holds_[at(index)]) {
    for (const int device : hold.devices) {
      while (state.devices.size() <= at(device)) {
        state.devices.push_back({.model = model({}), .usable = false});
      }
    }
    take_on(state, hold.demand, hold.devices, hold.presence);
  }
  return state;
}

NodeIndex Ledger::put(Node node) {
  const NodeIndex place = vacant_.empty() ? size() : vacant_.back();
  const auto [entry, added] = by_name_.emplace(node.name, place);
  const NodeIndex index = entry->second;
  if (added && !vacant_.empty()) {
    vacant_.pop_back();
  } else if (added) {
    nodes_.emplace_back();
    states_.emplace_back();
    holds_.emplace_back();
  }
  nodes_[at(index)] = std::move(node);
  states_[at(index)] = state_from(index);
  changed(index);
  return index;
}

void Ledger::remove(NodeIndex index) {
  by_name_.erase(node(index).name);
  vacant_.push_back(index);
  nodes_[at(index)] = {.ready = false};
  states_[at(index)] = state_from(index);
  changed(index);
}

std::optional<std::vector<NodeIndex>> Ledger::sort() {
  std::vector<NodeIndex> order;
  for (NodeIndex index = 0; index < size(); ++index) {
    if (is_there(index)) order.push_back(index);
  }
  const auto before = [this](NodeIndex a, NodeIndex b) {
    return node_name_less(node(a).name, node(b).name);
  };
  if (std::ranges::is_sorted(order, before)) return std::nullopt;
  std::ranges::sort(order, before);
  std::vector<NodeIndex> moved(at(size()), 0);
  std::vector<Node> nodes;
  std::vector<NodeState> states;
  std::vector<std::vector<Hold>> holds;
  for (const NodeIndex from : order) {
    const auto to = static_cast<NodeIndex>(nodes.size());
    moved[at(from)] = to;
    by_name_[node(from).name] = to;
    nodes.push_back(std::move(nodes_[at(from)]));
    states.push_back(std::move(states_[at(from)]));
    holds.push_back(std::move(holds_[at(from)]));
  }
  nodes_ = std::move(nodes);
  states_ = std::move(states);
  holds_ = std::move(holds);
  vacant_.clear();
  forgotten_ += changes_.size() + 1;  // only looking at every node helps
  changes_.clear();
  return moved;
}

std::optional<NodeIndex> Ledger::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

bool Ledger::accepts(const Demand& demand, ModelIndex model) const {
  const Model& offered = models_[at(model)];
  return wants(demand, offered.vendor, offered.name);
}

std::optional<DemandIndex> Ledger::find(const Demand& demand) const {
  const auto found = by_demand_.find(demand);
  if (found == by_demand_.end()) return std::nullopt;
  return found->second;
}

bool Ledger::selects(DemandIndex demand, NodeIndex node) const {
  const Demand& wanted = this->demand(demand);
  const Node& facts = this->node(node);
  if (!wanted.selector.empty() && !contains_all(facts.labels, wanted.selector)) return false;
  return !wanted.only_sees() || std::ranges::any_of(facts.devices, [&](const DeviceFacts& device) {
    return wants(wanted, device);
  });
}

Memory Ledger::reserve_on(const Demand& demand, Memory device_memory) const {
  return memory_follows_share(demand) ? memory_part(demand.share, device_memory)
                                      : demand.gpu_memory;
}

Memory Ledger::kept_on(const Demand& demand, Memory device_memory, Presence presence) const {
  const Memory reserved = reserve_on(demand, device_memory);
  if (!has_gpu_memory(presence)) return Memory{};
  if (!works(presence) && reserved == Memory{}) return device_memory;
  return reserved;
}

Memory Ledger::copy_of(DemandIndex index,
                       const NodeState& as,
                       const std::vector<int>& devices) const {
  Memory all{};
  // One that moves to another device holds both, and has a copy of what it has of one.
  const auto asked_for = static_cast<std::size_t>(std::max(demand(index).gpus, 0));
  for (const int i : std::span(devices).first(std::min(devices.size(), asked_for))) {
    if (at(i) >= as.devices.size()) continue;
    const DeviceState& device = as.devices[at(i)];
    const Memory reserved = reserve_on(demand(index), device.memory_shared);
    all += reserved == Memory{} ? device.memory : std::min(device.memory, reserved + kOfDriver);
  }
  return all;
}

bool Ledger::device_fits(DemandIndex index, const DeviceState& device) const {
  return device.usable && is_for(index, device) && accepts(index, device.model) &&
         has_compute(index, device) && has_memory(index, device);
}

bool Ledger::has_compute(DemandIndex index, const DeviceState& device) const {
  const Demand& wanted = demand(index);
  return !is_kept(wanted, device) && device.free >= share_held(wanted) &&
         mode_allows(wanted, device, rules_);
}

bool Ledger::has_memory(DemandIndex index, const DeviceState& device) const {
  const Demand& wanted = demand(index);
  if (device.memory == Memory{}) return wanted.gpu_memory == Memory{} && device.suspended == 0;
  const Memory reserve = reserve_on(wanted, device.memory_shared);
  // Beside a suspended job, only what is known to fit.
  if (reserve == Memory{}) return device.suspended == 0;
  return device.memory_free >= reserve;
}

bool Ledger::fits_state(DemandIndex index, NodeIndex node, const NodeState& as) const {
  const Demand& wanted = demand(index);
  if (!as.open || as.milli_cpus_free < wanted.milli_cpus || as.memory_free < wanted.memory ||
      !selects(index, node)) {
    return false;
  }
  int missing = wanted.gpus;
  for (const DeviceState& device : as.devices) {
    if (missing == 0) break;
    if (device_fits(index, device)) --missing;
  }
  return missing == 0;
}

std::vector<int> Ledger::first_devices(DemandIndex index, const NodeState& as) const {
  const auto wanted = static_cast<std::size_t>(demand(index).gpus);
  std::vector<int> devices;
  for (int i = 0; devices.size() < wanted && i < static_cast<int>(as.devices.size()); ++i) {
    if (device_fits(index, as.devices[at(i)])) devices.push_back(i);
  }
  return devices;
}

bool Ledger::can_go_on(DemandIndex index,
                       const NodeState& as,
                       const std::vector<int>& devices,
                       Presence presence) const {
  return as.milli_cpus_free >= demand(index).milli_cpus &&
         std::ranges::all_of(devices, [&](int device) {
           return at(device) < as.devices.size() && has_compute(index, as.devices[at(device)]) &&
                  (has_gpu_memory(presence) || has_memory(index, as.devices[at(device)]));
         });
}

bool Ledger::could_fit(DemandIndex index, NodeIndex node) const {
  const Node& facts = this->node(node);
  const Demand& wanted = demand(index);
  if (!is_there(node) || !selects(index, node) || facts.milli_cpus < wanted.milli_cpus ||
      facts.memory < wanted.memory) {
    return false;
  }
  const auto suits = [&](const DeviceFacts& device) {
    return wants(wanted, device) &&
           (wanted.gpu_memory == Memory{} || device.memory >= wanted.gpu_memory);
  };
  return std::ranges::count_if(facts.devices, suits) >= wanted.gpus;
}

Shortfall Ledger::shortfall_state(DemandIndex index, NodeIndex node, const NodeState& as) const {
  const Demand& wanted = demand(index);
  Shortfall lacks;
  lacks.closed = !as.open;
  lacks.selector = !selects(index, node);
  lacks.milli_cpus = std::max<std::int64_t>(0, wanted.milli_cpus - as.milli_cpus_free);
  lacks.memory = std::max(Memory{}, wanted.memory - as.memory_free);
  std::optional<Memory> memory;
  std::optional<Share> share;
  for (const DeviceState& device : as.devices) {
    const Memory reserve = reserve_on(wanted, device.memory_shared);
    if (!accepts(index, device.model) || device.memory < reserve) continue;
    ++lacks.devices_suitable;
    if (device_fits(index, device)) {
      ++lacks.devices_free;
      continue;
    }
    if (!device.usable || !is_for(index, device) || is_kept(wanted, device) ||
        !mode_allows(wanted, device, rules_)) {
      continue;
    }
    const Share less = std::max(Share{}, share_held(wanted) - device.free);
    // With less compute it would need less memory, too.
    const Memory needs = memory_follows_share(wanted)
                             ? memory_part(wanted.share - less, device.memory_shared)
                             : reserve;
    const Memory small = std::max(Memory{}, needs - device.memory_free);
    if (small == Memory{}) share = std::min(share.value_or(less), less);
    if (less == Share{} && (!memory || small < *memory)) {
      memory = small;
      lacks.gpu_memory_need = reserve;
    }
  }
  lacks.devices = std::max(0, wanted.gpus - lacks.devices_free);
  if (lacks.devices > 0) {
    lacks.gpu_memory = memory.value_or(Memory{});
    lacks.share = share.value_or(Share{});
  }
  return lacks;
}

void Ledger::take_on(NodeState& state,
                     DemandIndex index,
                     const std::vector<int>& devices,
                     Presence presence) const {
  const Demand& wanted = demand(index);
  if (has_cpus(presence)) state.milli_cpus_free -= wanted.milli_cpus;
  state.memory_free -= wanted.memory;
  if (has_copy(presence)) state.memory_free -= copy_of(index, state, devices);
  for (const int i : devices) {
    DeviceState& device = state.devices[at(i)];
    device.memory_free -= kept_on(wanted, device.memory_shared, presence);
    if (lends(presence)) ++device.lent;
    if (withholds(presence)) ++device.withheld;
    if (!works(presence)) {
      if (has_gpu_memory(presence)) ++device.suspended;
      continue;
    }
    device.free -= share_held(wanted);
    if (wanted.mode == GpuMode::TimeSlice) ++device.time_sliced;
    if (device.users++ == 0 || wanted.mode != GpuMode::Fraction) device.mode = wanted.mode;
  }
}

void Ledger::give_back_on(NodeState& state,
                          DemandIndex index,
                          const std::vector<int>& devices,
                          Presence presence) const {
  const Demand& wanted = demand(index);
  if (has_cpus(presence)) state.milli_cpus_free += wanted.milli_cpus;
  state.memory_free += wanted.memory;
  if (has_copy(presence)) state.memory_free += copy_of(index, state, devices);
  for (const int i : devices) {
    DeviceState& device = state.devices[at(i)];
    device.memory_free += kept_on(wanted, device.memory_shared, presence);
    if (lends(presence)) --device.lent;
    if (withholds(presence)) --device.withheld;
    if (!works(presence)) {
      if (has_gpu_memory(presence)) --device.suspended;
      continue;
    }
    device.free += share_held(wanted);
    if (wanted.mode == GpuMode::TimeSlice) --device.time_sliced;
    if (--device.users == 0) {
      device.mode = GpuMode::Whole;
    } else if (device.mode == GpuMode::TimeSlice && device.time_sliced == 0) {
      device.mode = GpuMode::Fraction;
    }
  }
}

void Ledger::take(DemandIndex demand, const Placement& placement, Presence presence) {
  const auto& devices = placement.devices;
  holds_[at(placement.node)].push_back({demand, devices, presence});
  NodeState& state = states_[at(placement.node)];
  const bool known = std::ranges::all_of(
      devices, [&state](int device) { return at(device) < state.devices.size(); });
  if (known) {
    take_on(state, demand, devices, presence);
  } else {
    state = state_from(placement.node);
  }
  changed(placement.node);
}

void Ledger::give_back(DemandIndex demand, const Placement& placement, Presence presence) {
  std::vector<Hold>& holds = holds_[at(placement.node)];
  const auto hold = std::ranges::find_if(holds, [&](const Hold& held) {
    return held.demand == demand && held.presence == presence && held.devices == placement.devices;
  });
  if (hold == holds.end()) return;
  *hold = std::move(holds.back());
  holds.pop_back();
  NodeState& state = states_[at(placement.node)];
  if (state.devices.size() == node(placement.node).devices.size()) {
    give_back_on(state, demand, placement.devices, presence);
  } else {
    state = state_from(placement.node);
  }
  changed(placement.node);
}

Ledger Ledger::emptied() const {
  Ledger other = *this;
  for (NodeIndex index = 0; index < size(); ++index) {
    other.holds_[at(index)].clear();
    other.states_[at(index)] = other.state_from(index);
    other.changed(index);
  }
  return other;
}

void Ledger::changed(NodeIndex node) {
  changes_.push_back(node);
  if (changes_.size() < kMaxChanges) return;
  const std::size_t drop = changes_.size() - kLeastChanges;
  changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(drop));
  forgotten_ += drop;
}

std::optional<std::span<const NodeIndex>> Ledger::changed_since(std::uint64_t version) const {
  if (version < forgotten_) return std::nullopt;
  return std::span(changes_).subspan(static_cast<std::size_t>(version - forgotten_));
}

std::string Ledger::check() const {
  for (NodeIndex index = 0; index < size(); ++index) {
    Ledger fresh(rules_);
    fresh.models_ = models_;
    fresh.demands_ = demands_;
    fresh.nodes_ = {node(index)};
    fresh.holds_ = {holds_[at(index)]};
    const std::string& name = node(index).name;
    if (fresh.state_from(0) != state(index)) {
      return fmt::format("the state of node '{}' is not what its jobs leave", name);
    }
    for (std::size_t i = 0; i < state(index).devices.size(); ++i) {
      const DeviceState& device = state(index).devices[i];
      if (device.free < Share{} || device.free > Share::whole()) {
        return fmt::format(
            "device {} of node '{}' has {} of its compute free", i, name, share_text(device.free));
      }
      if (device.suspended < 0 || device.lent < 0) {
        return fmt::format("device {} of node '{}' has {} suspended jobs and {} that lend it",
                           i,
                           name,
                           device.suspended,
                           device.lent);
      }
      if (device.users > 1 && device.mode == GpuMode::Whole) {
        return fmt::format(
            "device {} of node '{}' is not shared but has {} jobs", i, name, device.users);
      }
    }
  }
  return {};
}

}  // namespace gflow::placement
