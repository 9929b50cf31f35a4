// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/missing.h"
#include "devices/sim/machine_file.h"
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
    device.trouble = kMigTrouble;
    device.usable = false;
  }
  return device;
}

}  // namespace

Machine machine_of(const SimMachine& simulated, const std::string& source) {
  Machine machine;
  machine.name = simulated.name;
  machine.source = source;
  machine.driver = simulated.driver;
  machine.cpus = simulated.cpus;
  machine.memory = simulated.memory;
  machine.topology = simulated.topology;
  for (const SimDevice& one : simulated.devices) machine.devices.push_back(view_of(one));
  return machine;
}

}  // namespace gflow::devices::sim
