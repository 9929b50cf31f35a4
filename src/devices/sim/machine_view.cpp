// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/missing.h"
#include "devices/sim/machine_file.h"
#include "devices/sim/slices.h"
#include "devices/trouble.h"

namespace gflow::devices::sim {
namespace {

Device view_of(const SimDevice& simulated) {
  Device device = simulated.device;
  if (simulated.state == DeviceState::Lost) {
    without_readings(device);
    device.trouble = kLostTrouble;
    device.usable = false;
    return device;
  }
  for (const SimProcess& one : simulated.processes) {
    if (one.kind == ProcessKind::Compute) device.processes.push_back(one.process);
  }
  std::vector<Missing> missing;
  const auto hide = [&](const char* reading, auto& value) {
    if (std::ranges::find(simulated.unsupported, reading) == simulated.unsupported.end()) return;
    value = {};
    missing.push_back({reading, "Not Supported"});
  };
  hide("memory_total", device.memory_total);
  hide("memory_used", device.memory_used);
  hide("utilization", device.utilization_percent);
  hide("temperature", device.temperature_celsius);
  hide("power", device.power_milliwatts);
  hide("power_limit", device.power_limit_milliwatts);
  hide("processes", device.processes);
  device.trouble = missing_text(missing);
  if (simulated.state == DeviceState::Mig) {
    device.utilization_percent.reset();  // no driver tells it
    device.trouble = kMigTrouble;
    device.usable = false;
  }
  return device;
}

Device view_of(const SimDevice& simulated, const SimSlice& slice) {
  const Device gpu = view_of(simulated);
  Device device;
  device.vendor = gpu.vendor;
  device.model = slice_model(gpu, slice);
  device.uuid = slice.uuid;
  device.pci_address = gpu.pci_address;
  device.numa_node = gpu.numa_node;
  device.mig = slice.mig;
  device.nodes = gpu.nodes;
  device.memory_total = slice.memory_total;
  if (simulated.state == DeviceState::Lost) {
    device.trouble = kSliceLostTrouble;
    device.usable = false;
    return device;
  }
  device.memory_used = slice.memory_used;
  device.temperature_celsius = gpu.temperature_celsius;
  for (const SimProcess& one : slice.processes) {
    if (one.kind == ProcessKind::Compute) device.processes.push_back(one.process);
  }
  return device;
}

/// The devices, each GPU that is cut replaced by its slices, and how they are connected.
void add_devices(const SimMachine& simulated, Machine& machine) {
  std::vector<TopologyPlace> places;
  for (const SimDevice& one : simulated.devices) {
    const int gpu = one.device.index;
    if (one.slices.empty()) {
      machine.devices.push_back(view_of(one));
      places.push_back({.origin = gpu});
    }
    for (const SimSlice& slice : one.slices) {
      machine.devices.push_back(view_of(one, slice));
      places.push_back({.origin = gpu, .is_slice = true});
    }
  }
  for (std::size_t at = 0; at < machine.devices.size(); ++at) {
    machine.devices[at].index = static_cast<int>(at);
  }
  machine.topology = simulated.topology;
  if (places.size() != simulated.devices.size() ||
      std::ranges::any_of(places, &TopologyPlace::is_slice)) {
    machine.topology = placed_topology(simulated.topology, places);
  }
}

}  // namespace

Machine machine_of(const SimMachine& simulated, const std::string& source) {
  Machine machine;
  machine.name = simulated.name;
  machine.source = source;
  machine.driver = simulated.driver;
  machine.cpus = simulated.cpus;
  machine.memory = simulated.memory;
  add_devices(simulated, machine);
  for (const SimDevice& one : simulated.devices) {
    if (one.state == DeviceState::Mig) machine.mig_gpus.push_back(one.mig);
  }
  return machine;
}

}  // namespace gflow::devices::sim
