// SPDX-License-Identifier: Apache-2.0
#include "engine/machine_node.h"

#include <algorithm>

#include "core/catalogue.h"

namespace gflow::engine {

MemoryLost memory_lost(const Device& device, const Declared& declared) {
  constexpr std::int64_t kMostKept = 16;  // more than this part of a device is no driver's
  Memory foreign{};
  for (const DeviceProcess& process : device.processes) {
    foreign += process.memory.value_or(Memory{});
  }
  Memory explained = foreign;
  Memory beyond{};
  for (const JobUse& use : device.uses) {
    const std::optional<Memory> has = declared(use, device);
    // A use that is not told is taken for what was declared, so that it counts once.
    const Memory used = use.memory.value_or(has.value_or(Memory{}));
    explained += used;
    if (has && used > *has) beyond += used - *has;
  }
  const Memory unexplained = std::max(Memory{}, device.memory_used.value_or(Memory{}) - explained);
  const Memory all = device.memory_total.value_or(Memory{});
  return {foreign + beyond + unexplained, std::min(unexplained, Memory{all.bytes / kMostKept})};
}

placement::Node node_of(const NodeRecord& record,
                        const std::vector<Drain>& drains,
                        const Policy& policy,
                        const Declared& declared) {
  const Machine& machine = record.machine;
  placement::Node node;
  node.name = machine.name;
  node.ready = !record.unreachable && !record.removed;
  node.labels = machine.labels;
  node.milli_cpus = std::int64_t{machine.cpus.value_or(0)} * 1000;
  node.memory = machine.memory.value_or(Memory{});
  if (machine.topology.gpus > 0) {
    node.topology = std::make_shared<const Topology>(machine.topology);
  }
  for (const Device& device : machine.devices) {
    const MemoryLost lost = memory_lost(device, declared);
    // Devices stand at their index; a gap is a device that is not there.
    node.devices.resize(static_cast<std::size_t>(device.index), {.usable = false, .absent = true});
    node.devices.push_back(
        {.vendor = device.vendor,
         .model = catalogue::device_model(device.vendor, device.model, device.memory_total),
         .memory = device.memory_total.value_or(Memory{}),
         .memory_lost = lost.all,
         .memory_kept = lost.kept,
         .usable =
             bar_of(device, drain_of_device(drains, machine.name, device), policy.other_use()) ==
             DeviceBar::None});
  }
  node.drained = drain_of_node(drains, machine.name) != nullptr;
  return node;
}

}  // namespace gflow::engine
