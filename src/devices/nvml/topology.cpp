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

/// Where each of the devices was before.
std::vector<TopologyPlace> places_before(const Machine& before,
                                         const std::vector<Device>& devices) {
  std::vector<TopologyPlace> places;
  for (const Device& device : devices) {
    const auto same = std::ranges::find_if(before.devices, [&device](const Device& one) {
      return one.uuid == device.uuid && one.pci_address == device.pci_address;
    });
    places.push_back({.origin = same == before.devices.end() ? -1 : same->index,
                      .is_slice = device.mig.has_value()});
  }
  return places;
}

/// The GPU of an address, or all that it is cut into.
std::vector<const Device*> devices_at(const std::vector<Device>& devices,
                                      const std::string& pci_address) {
  std::vector<const Device*> found;
  for (const Device& device : devices) {
    if (!pci_address.empty() && device.pci_address == pci_address) found.push_back(&device);
  }
  return found;
}

std::size_t gpus_of(const std::vector<Device>& devices) {
  std::vector<std::string> addresses;
  for (const Device& device : devices) addresses.push_back(device.pci_address);
  std::ranges::sort(addresses);
  const auto repeated = std::ranges::unique(addresses);
  return addresses.size() - repeated.size();
}

void set_pair(Topology& topology, const Device& a, const Device& b, const PeerReport& peer) {
  const bool has_links = !a.mig && !b.mig;
  for (const std::size_t pair : {topology.at(a.index, b.index), topology.at(b.index, a.index)}) {
    topology.links[pair] = has_links ? std::min(peer.links, kMaxLinks) : 0;
    topology.paths[pair] = peer.path;
  }
}

/// What the report says of one GPU.
void add_connections(Topology& topology,
                     const std::vector<Device>& devices,
                     const DeviceReport& report) {
  for (const Device* device : devices_at(devices, report.pci_address)) {
    for (const Device* sibling : devices_at(devices, report.pci_address)) {
      if (sibling != device) set_pair(topology, *device, *sibling, {.path = PathClass::Pix});
    }
    for (const PeerReport& peer : report.peers) {
      for (const Device* other : devices_at(devices, peer.pci_address)) {
        if (other->pci_address != device->pci_address) set_pair(topology, *device, *other, peer);
      }
    }
    if (report.switch_links > 0 && !device->mig) {
      topology.switch_links.resize(devices.size());
      topology.switch_links[at(device->index)] = std::min(report.switch_links, kMaxLinks);
    }
  }
}

}  // namespace

Topology topology_after(const Machine& before,
                        const std::vector<Device>& devices,
                        const Report& report) {
  const bool told = std::ranges::any_of(
      report.devices, [](const DeviceReport& device) { return !device.peers.empty(); });
  const int gpus = static_cast<int>(devices.size());
  if (gpus == 0 || gpus > kMaxTopologyGpus) return {};
  if (!told && before.topology.gpus == 0 && gpus_of(devices) > 1) return {};
  Topology topology = before.topology.gpus == 0
                          ? plain_topology(gpus, PathClass::Sys)
                          : placed_topology(before.topology, places_before(before, devices));
  topology.speeds = slowest(devices);
  for (const Device& device : devices) topology.numa[at(device.index)] = device.numa_node;
  for (const DeviceReport& one : report.devices) add_connections(topology, devices, one);
  const auto is_linked = [](int links) { return links > 0; };
  if (std::ranges::none_of(topology.switch_links, is_linked)) topology.switch_links.clear();
  topology.cpus = report.numa_cpus;
  return topology;
}

}  // namespace gflow::devices::nvml
