// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "devices/nvml/topology.h"
#include "devices/trouble.h"

namespace gflow::devices::nvml {
namespace {

/// Readings and trouble of a GPU that answered.
Device device_of(const DeviceReport& report) {
  Device device;
  device.vendor = "nvidia";
  device.model = report.name.empty() ? "NVIDIA GPU" : report.name;
  device.uuid = report.uuid;
  device.pci_address = report.pci_address;
  device.numa_node = report.numa_node;
  device.memory_total = report.memory_total;
  device.memory_used = report.memory_used;
  device.utilization_percent = report.utilization_percent;
  device.temperature_celsius = report.temperature_celsius;
  device.power_milliwatts = report.power_milliwatts;
  device.power_limit_milliwatts = report.power_limit_milliwatts;
  for (const ProcessReport& one : report.processes) {
    if (one.kind == ProcessKind::Compute) device.processes.push_back(one.process);
  }
  device.trouble = missing_text(report.missing);
  if (report.mig == true) device.trouble = kMigTrouble;
  if (!report.fatal.empty()) {
    without_readings(device);
    device.trouble = fmt::format("the driver says: {}", report.fatal);
  }
  device.usable = report.fatal.empty() && report.mig != true;
  return device;
}

bool same_device(const Device& a, const Device& b) {
  return a.uuid.empty() || b.uuid.empty() ? a.pci_address == b.pci_address : a.uuid == b.uuid;
}

/// What a GPU is does not change; a dying one may give its UUID and no name.
void keep_identity(Device& fresh, const Device& known) {
  fresh.index = known.index;
  if (fresh.uuid.empty()) fresh.uuid = known.uuid;
  if (fresh.pci_address.empty()) fresh.pci_address = known.pci_address;
  if (!fresh.numa_node) fresh.numa_node = known.numa_node;
  if (!fresh.usable && fresh.model == "NVIDIA GPU") fresh.model = known.model;
  if (!fresh.usable && !fresh.memory_total) fresh.memory_total = known.memory_total;
}

Device lost(Device device) {
  without_readings(device);
  device.trouble = kLostTrouble;
  device.usable = false;
  return device;
}

}  // namespace

Machine machine_after(const Machine& before, const Report& report) {
  Machine after = before;
  after.source = "nvml";
  after.driver = report.driver;
  after.note.clear();
  std::vector<Device> fresh;
  for (const DeviceReport& one : report.devices) fresh.push_back(device_of(one));
  std::size_t lost_count = 0;
  for (Device& known : after.devices) {
    const auto same = [&known](const Device& one) { return same_device(one, known); };
    const auto found = std::ranges::find_if(fresh, same);
    if (found == fresh.end()) {
      known = lost(std::move(known));
      ++lost_count;
      continue;
    }
    keep_identity(*found, known);
    known = std::move(*found);
    fresh.erase(found);
  }
  for (Device& one : fresh) {
    one.index = static_cast<int>(after.devices.size());
    after.devices.push_back(std::move(one));
  }
  after.topology = topology_after(after, report);
  if (report.unreachable.size() > lost_count) {
    after.note = fmt::format("{} more in the machine that the driver cannot open: {}",
                             report.unreachable.size() - lost_count,
                             join(report.unreachable, ", "));
  }
  if (after.devices.empty() && after.note.empty()) after.note = "the NVIDIA driver finds no GPU";
  return after;
}

Machine machine_stale(const Machine& before, const std::string& note) {
  Machine after = before;
  after.note = note;
  for (Device& device : after.devices) {
    without_readings(device);
    device.trouble = note;
    device.usable = false;
  }
  return after;
}

}  // namespace gflow::devices::nvml
