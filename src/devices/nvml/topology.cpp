// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/topology.h"
#include "base/at.h"

#include <algorithm>

namespace gflow::devices::nvml {
namespace {

LinkSpeeds slowest(const std::vector<Device>& devices) {
  LinkSpeeds speeds = speeds_of_model(devices.front().model);
  for (const Device& device : devices) {
    const LinkSpeeds other = speeds_of_model(device.model);
    speeds.link = std::min(speeds.link, other.link);
    for (std::size_t path = 0; path < kPathClasses; ++path) {
      speeds.path.at(path) = std::min(speeds.path.at(path), other.path.at(path));
    }
  }
  return speeds;
}

/// What was known of the pairs among the first devices: indices stay.
void keep_known(const Topology& before, Topology& topology) {
  const int known = std::min(before.gpus, topology.gpus);
  for (int a = 0; a < known; ++a) {
    for (int b = 0; b < known; ++b) {
      topology.links[at(a * topology.gpus + b)] = before.links_between(a, b);
      topology.paths[at(a * topology.gpus + b)] = before.path_between(a, b);
    }
    if (before.has_switch()) {
      topology.switch_links.resize(at(topology.gpus));
      topology.switch_links[at(a)] = before.switch_links[at(a)];
    }
  }
}

const Device* device_at(const Machine& machine, const std::string& pci_address) {
  const auto found = std::ranges::find(machine.devices, pci_address, &Device::pci_address);
  return found == machine.devices.end() || pci_address.empty() ? nullptr : &*found;
}

void set_pair(Topology& topology, int a, int b, const PeerReport& peer) {
  for (const std::size_t pair : {at(a * topology.gpus + b), at(b * topology.gpus + a)}) {
    topology.links[pair] = std::min(peer.links, kMaxLinks);
    topology.paths[pair] = peer.path;
  }
}

}  // namespace

Topology topology_after(const Machine& machine, const Report& report) {
  const bool told = std::ranges::any_of(
      report.devices, [](const DeviceReport& device) { return !device.peers.empty(); });
  const int gpus = static_cast<int>(machine.devices.size());
  if (gpus == 0 || gpus > kMaxTopologyGpus) return {};
  if (!told && machine.topology.gpus == 0 && gpus > 1) return {};
  Topology topology = plain_topology(gpus, PathClass::Sys);
  topology.speeds = slowest(machine.devices);
  keep_known(machine.topology, topology);
  for (const Device& device : machine.devices) {
    topology.numa[at(device.index)] = device.numa_node;
  }
  for (const DeviceReport& one : report.devices) {
    const Device* device = device_at(machine, one.pci_address);
    if (device == nullptr || one.peers.empty()) continue;
    for (const PeerReport& peer : one.peers) {
      const Device* other = device_at(machine, peer.pci_address);
      if (other != nullptr && other != device) {
        set_pair(topology, device->index, other->index, peer);
      }
    }
    if (one.switch_links > 0) {
      topology.switch_links.resize(at(gpus));
      topology.switch_links[at(device->index)] = std::min(one.switch_links, kMaxLinks);
    }
  }
  topology.cpus = report.numa_cpus;
  return topology;
}

}  // namespace gflow::devices::nvml
