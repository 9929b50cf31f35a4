// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/device_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.h"
#include "os/file.h"

namespace gflow::devices::nvml {
namespace {

// Of the NVIDIA driver: GPUs have minor numbers below those of what is common to all (modeset,
// nvidiactl).
constexpr std::uint32_t kMajor = 195;
constexpr std::uint32_t kLastGpu = 247;

/// How /dev/nvidia-caps is numbered: "gpu0/gi3/access" by minor number.
struct Capabilities {
  std::uint32_t major = 0;
  std::map<std::string, std::uint32_t, std::less<>> minors;
};

/// The major number that the kernel gave a driver, by a line "NUMBER NAME" of /proc/devices.
std::optional<std::uint32_t> major_of(const std::string& devices, std::string_view driver) {
  for (const std::string_view line : split(devices, '\n')) {
    const std::string_view entry = trim(line);
    const std::size_t space = entry.find(' ');
    if (space == std::string_view::npos || trim(entry.substr(space)) != driver) continue;
    if (const auto number = parse_number(entry.substr(0, space))) {
      return static_cast<std::uint32_t>(*number);
    }
  }
  return std::nullopt;
}

std::optional<Capabilities> capabilities_of(const std::string& procfs) {
  const auto devices = os::read_file(procfs + "/devices");
  const auto table = os::read_file(procfs + "/driver/nvidia-caps/mig-minors");
  const auto major = devices ? major_of(*devices, "nvidia-caps") : std::nullopt;
  if (!major || !table) return std::nullopt;
  Capabilities read{.major = *major, .minors = {}};
  for (const std::string_view line : split(*table, '\n')) {
    const std::size_t space = line.find(' ');
    const auto minor = parse_number(trim(line.substr(std::min(space, line.size()))));
    if (minor) read.minors[std::string(line.substr(0, space))] = static_cast<std::uint32_t>(*minor);
  }
  return read;
}

/// What lets who opened them use one GPU instance, and one compute instance within it.
std::vector<DeviceNodes> nodes_of(const Capabilities& capabilities,
                                  int minor,
                                  const SliceReport& slice) {
  const std::string instance = fmt::format("gpu{}/gi{}", minor, slice.gpu_instance);
  std::vector<DeviceNodes> nodes;
  for (const std::string& name :
       {instance + "/access", fmt::format("{}/ci{}/access", instance, slice.compute_instance)}) {
    const auto found = capabilities.minors.find(name);
    if (found == capabilities.minors.end()) return {};
    nodes.push_back(DeviceNodes::one(capabilities.major, found->second));
  }
  return nodes;
}

/// /dev/dri/cardN and renderDN of a GPU that has a display driver.
void add_display_nodes(const std::string& sysfs, DeviceReport& device) {
  const std::string drm = fmt::format("{}/bus/pci/devices/{}/drm", sysfs, device.pci_address);
  auto names = os::names_in(drm).value_or(std::vector<std::string>{});
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const auto text = os::read_file(fmt::format("{}/{}/dev", drm, name));
    const auto nodes = text ? parse_device_nodes(trim(*text)) : std::nullopt;
    if (nodes) device.nodes.push_back(*nodes);
  }
}

/// All that are of an instance of MIG, in as few ranges as there are. The others (config, monitor)
/// are root's.
void add_instances(const Capabilities& capabilities, std::vector<DeviceNodes>& all) {
  std::set<std::uint32_t> minors;
  for (const auto& [name, minor] : capabilities.minors) {
    if (name.starts_with("gpu")) minors.insert(minor);
  }
  std::vector<DeviceNodes> ranges;
  for (const std::uint32_t minor : minors) {
    if (!ranges.empty() && ranges.back().last + 1 == minor) {
      ranges.back().last = minor;
    } else {
      ranges.push_back(DeviceNodes::one(capabilities.major, minor));
    }
  }
  all.insert(all.end(), ranges.begin(), ranges.end());
}

}  // namespace

DeviceNodes nvidia_gpus() { return {.major = kMajor, .first = 0, .last = kLastGpu}; }

void add_device_nodes(const std::string& sysfs, const std::string& procfs, Report& report) {
  report.gpu_nodes = {nvidia_gpus()};
  const auto capabilities = capabilities_of(procfs);
  if (capabilities) add_instances(*capabilities, report.gpu_nodes);
  for (DeviceReport& device : report.devices) {
    if (!device.minor) continue;
    device.nodes = {DeviceNodes::one(kMajor, static_cast<std::uint32_t>(*device.minor))};
    if (!device.pci_address.empty()) add_display_nodes(sysfs, device);
    for (SliceReport& slice : device.slices) {
      if (capabilities) slice.nodes = nodes_of(*capabilities, *device.minor, slice);
    }
  }
}

}  // namespace gflow::devices::nvml
