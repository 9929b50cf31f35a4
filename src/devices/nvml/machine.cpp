// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.h"
#include "core/mig_profile.h"
#include "devices/nvml/topology.h"
#include "devices/trouble.h"

namespace gflow::devices::nvml {
namespace {

std::string unread_text(const DeviceReport& gpu) {
  return fmt::format("the driver does not tell how this GPU is cut by MIG: {}", gpu.mig_unread);
}

std::vector<DeviceProcess> computing(const std::vector<ProcessReport>& processes) {
  std::vector<DeviceProcess> those;
  for (const ProcessReport& one : processes) {
    if (one.kind == ProcessKind::Compute) those.push_back(one.process);
  }
  return those;
}

/// `fatal`: why it cannot be used at all; "" if nothing is.
void fail_by(const std::string& fatal, Device& device) {
  if (fatal.empty()) return;
  without_readings(device);
  device.usable = false;
  device.trouble = fmt::format("the driver says: {}", fatal);
}

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
  device.processes = computing(report.processes);
  device.nodes = report.nodes;
  device.trouble = missing_text(report.missing);
  if (report.mig == true) device.trouble = kMigTrouble;
  if (!report.mig_unread.empty()) device.trouble = unread_text(report);
  device.usable = report.mig != true && report.mig_unread.empty();
  fail_by(report.fatal, device);
  return device;
}

/// A MIG device of a GPU that answered.
Device device_of(const DeviceReport& gpu, const SliceReport& slice) {
  Device device;
  device.vendor = "nvidia";
  device.model = slice.name;
  if (!find_mig_profile(slice.name)) {
    device.model = fmt::format("{} MIG {}",
                               gpu.name.empty() ? "NVIDIA GPU" : gpu.name,
                               slice.profile.empty() ? "device" : slice.profile);
  }
  device.uuid = slice.uuid;
  device.pci_address = gpu.pci_address;
  device.numa_node = gpu.numa_node;
  device.memory_total = slice.memory_total;
  device.memory_used = slice.memory_used;
  device.temperature_celsius = gpu.temperature_celsius;
  device.processes = computing(slice.processes);
  if (!gpu.nodes.empty() && !slice.nodes.empty()) {
    device.nodes = gpu.nodes;
    device.nodes.insert(device.nodes.end(), slice.nodes.begin(), slice.nodes.end());
  }
  device.trouble = missing_text(slice.missing);
  if (slice.profile.empty()) {
    device.usable = false;  // nobody could ask for it, and it is no GPU
    device.trouble = "the driver does not tell the profile of this MIG device";
  }
  fail_by(slice.fatal, device);
  device.mig = MigDevice{gpu.uuid, slice.profile, slice.gpu_instance, slice.compute_instance};
  return device;
}

/// Of a GPU with MIG enabled. What a reading does not tell is as it was: a job that asks for it is
/// not told that there is no such thing.
MigGpu mig_gpu_of(const DeviceReport& gpu, const MigGpu* known) {
  const std::string& unread = gpu.mig_unread.empty() ? gpu.room_unread : gpu.mig_unread;
  MigGpu read{.uuid = gpu.uuid, .model = gpu.name, .kinds = gpu.kinds, .instances = gpu.instances};
  if (unread.empty()) return read;
  if (known != nullptr) read = *known;
  read.unread = fmt::format("the driver does not tell how it can be cut: {}", unread);
  return read;
}

/// Whether the device is, or is cut from, the GPU of the report.
bool is_of(const Device& device, const DeviceReport& report) {
  const std::string& uuid = device.mig ? device.mig->parent : device.uuid;
  if (report.uuid.empty() || uuid.empty()) return device.pci_address == report.pci_address;
  return uuid == report.uuid;
}

/// A GPU, or the MIG devices it is cut into. Of one that works no more they are not told: those
/// that were known say so.
std::vector<Device> devices_of(const DeviceReport& report, const std::vector<Device>& known) {
  std::vector<Device> devices;
  if (report.fatal.empty()) {
    for (const SliceReport& slice : report.slices) devices.push_back(device_of(report, slice));
    if (!devices.empty()) return devices;  // what was known besides is kept, if it may be there
  }
  const bool was_cut = std::ranges::any_of(
      known, [&report](const Device& one) { return one.mig && is_of(one, report); });
  const bool is_known = report.fatal.empty() && report.mig_unread.empty();
  if (is_known || !was_cut) devices.push_back(device_of(report));
  return devices;
}

bool same_device(const Device& a, const Device& b) {
  if (a.mig.has_value() != b.mig.has_value()) return false;
  return a.uuid.empty() || b.uuid.empty() ? a.pci_address == b.pci_address : a.uuid == b.uuid;
}

/// Whether a device that is not in the report is no more, rather than lost: its GPU works and is
/// cut otherwise now.
bool is_no_more(const Device& known, const Report& report) {
  return std::ranges::any_of(report.devices, [&known](const DeviceReport& one) {
    return one.fatal.empty() && one.mig_unread.empty() && is_of(known, one);
  });
}

/// What a GPU is does not change; a dying one may give its UUID and no name.
void keep_identity(Device& fresh, const Device& known) {
  if (fresh.uuid.empty()) fresh.uuid = known.uuid;
  if (fresh.mig && fresh.mig->parent.empty()) fresh.mig->parent = known.mig->parent;
  if (fresh.pci_address.empty()) fresh.pci_address = known.pci_address;
  if (!fresh.numa_node) fresh.numa_node = known.numa_node;
  if (!fresh.usable && fresh.model == "NVIDIA GPU") fresh.model = known.model;
  if (!fresh.usable && !fresh.memory_total) fresh.memory_total = known.memory_total;
  // Without them a job on it would be kept from no GPU.
  if (fresh.nodes.empty()) fresh.nodes = known.nodes;
}

/// `report`: of the GPU that it is cut from; null where the driver has none.
Device lost(Device device, const DeviceReport* report) {
  without_readings(device);
  device.trouble = device.mig ? kSliceLostTrouble : kLostTrouble;
  if (report != nullptr && !report->mig_unread.empty()) device.trouble = unread_text(*report);
  device.usable = false;
  return device;
}

/// How many GPUs that is: those of a GPU's slices count once.
std::size_t gpus_among(const std::vector<Device>& devices) {
  std::set<std::string> gpus;
  for (const Device& one : devices) gpus.insert(one.mig ? one.mig->parent : one.uuid);
  return gpus.size();
}

}  // namespace

Machine machine_after(const Machine& before, const Report& report) {
  Machine after = before;
  after.source = "nvml";
  after.driver = report.driver;
  if (!report.gpu_nodes.empty()) after.gpu_nodes["nvidia"] = report.gpu_nodes;
  after.note.clear();
  after.devices.clear();
  std::vector<Device> fresh;
  for (const DeviceReport& one : report.devices) {
    std::ranges::move(devices_of(one, before.devices), std::back_inserter(fresh));
  }
  std::vector<Device> losses;
  for (const Device& known : before.devices) {
    const auto found = std::ranges::find_if(
        fresh, [&known](const Device& one) { return same_device(one, known); });
    if (found != fresh.end()) {
      keep_identity(*found, known);
      after.devices.push_back(std::move(*found));
      fresh.erase(found);
    } else if (!is_no_more(known, report)) {
      losses.push_back(known);
      const auto of = std::ranges::find_if(
          report.devices, [&known](const DeviceReport& one) { return is_of(known, one); });
      after.devices.push_back(lost(known, of == report.devices.end() ? nullptr : &*of));
    }
  }
  after.mig_gpus.clear();
  for (const DeviceReport& one : report.devices) {
    const auto known = std::ranges::find(before.mig_gpus, one.uuid, &MigGpu::uuid);
    const bool was = known != before.mig_gpus.end();
    // That MIG is enabled may be what it does not tell.
    if (one.fatal.empty() && (one.mig == true || (was && !one.mig_unread.empty()))) {
      after.mig_gpus.push_back(mig_gpu_of(one, was ? &*known : nullptr));
    }
  }
  std::ranges::move(fresh, std::back_inserter(after.devices));
  for (std::size_t at = 0; at < after.devices.size(); ++at) {
    after.devices[at].index = static_cast<int>(at);
  }
  after.topology = topology_after(before, after.devices, report);
  const std::size_t lost_count = gpus_among(losses);
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
  for (MigGpu& gpu : after.mig_gpus) gpu.unread = note;
  for (Device& device : after.devices) {
    without_readings(device);
    device.trouble = note;
    device.usable = false;
  }
  return after;
}

}  // namespace gflow::devices::nvml
