// SPDX-License-Identifier: Apache-2.0
#include "devices/device_indices.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "devices/trouble.h"

namespace gflow::devices {
namespace {

std::size_t place(int index) { return static_cast<std::size_t>(index); }

Device missing(Device device) {
  without_readings(device);
  device.uses.clear();
  device.trouble = device.mig ? kSliceGoneTrouble : kGoneTrouble;
  device.usable = false;
  return device;
}

int first_free(const std::set<int>& taken) {
  int index = 0;
  while (taken.contains(index)) ++index;
  return index;
}

/// The same links between the same devices: the one at `from` is at to[from] now.
Topology moved(const Topology& before, const std::vector<int>& to, int gpus) {
  if (before.gpus != static_cast<int>(to.size()) || gpus > kMaxTopologyGpus) return {};
  Topology after = plain_topology(gpus, PathClass::Sys);
  after.link_name = before.link_name;
  after.speeds = before.speeds;
  after.cpus = before.cpus;
  if (before.has_switch()) after.switch_links.assign(place(gpus), 0);
  if (before.numa.empty()) after.numa.clear();
  for (int a = 0; a < before.gpus; ++a) {
    const int now = to[place(a)];
    if (before.has_switch()) after.switch_links[place(now)] = before.switch_links[place(a)];
    if (!before.numa.empty()) after.numa[place(now)] = before.numa[place(a)];
    for (int b = 0; b < before.gpus; ++b) {
      const std::size_t pair = after.at(now, to[place(b)]);
      after.links[pair] = before.links_between(a, b);
      after.paths[pair] = before.path_between(a, b);
    }
  }
  return after;
}

}  // namespace

DeviceIndices::DeviceIndices(const std::vector<Device>& held) {
  for (const Device& device : held) {
    const bool again = std::ranges::any_of(known_, [&device](const Device& one) {
      return one.index == device.index || one.uuid == device.uuid;
    });
    if (!again && !device.uuid.empty()) known_.push_back(device);
  }
  std::ranges::sort(known_, {}, &Device::index);
}

Machine DeviceIndices::applied_to(Machine reading, const std::function<bool(int)>& is_held) {
  std::set<int> taken;
  std::vector<int> to(reading.devices.size(), -1);
  has_missing_ = false;
  std::vector<Device> gone;
  for (const Device& known : known_) {
    const auto same = std::ranges::find_if(reading.devices, [&known](const Device& one) {
      return !one.uuid.empty() && one.uuid == known.uuid;
    });
    if (same != reading.devices.end()) {
      to[static_cast<std::size_t>(same - reading.devices.begin())] = known.index;
      taken.insert(known.index);
    } else if (!known.uuid.empty() && is_held(known.index)) {
      gone.push_back(missing(known));
      taken.insert(known.index);
    }
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    const int wanted = reading.devices[i].index;
    if (to[i] < 0 && taken.insert(wanted).second) to[i] = wanted;
  }
  for (int& index : to) {
    if (index < 0) taken.insert(index = first_free(taken));
  }
  has_missing_ = !gone.empty();
  const bool moves =
      has_missing_ || !std::ranges::equal(to, reading.devices, {}, {}, &Device::index);
  if (moves && reading.topology.gpus > 0) {
    reading.topology = moved(reading.topology, to, *taken.rbegin() + 1);
  }
  for (std::size_t i = 0; i < to.size(); ++i) reading.devices[i].index = to[i];
  std::ranges::move(gone, std::back_inserter(reading.devices));
  std::ranges::sort(reading.devices, {}, &Device::index);
  known_ = reading.devices;
  return reading;
}

}  // namespace gflow::devices
