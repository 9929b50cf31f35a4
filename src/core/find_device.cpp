// SPDX-License-Identifier: Apache-2.0
#include "core/find_device.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace gflow {

const Device* find_device(const Machine& machine, int index) {
  const auto found = std::ranges::find(machine.devices, index, &Device::index);
  return found == machine.devices.end() ? nullptr : &*found;
}

int gpu_number(const Device& device, const std::vector<const Device*>& all) {
  const auto is_slice = [](const Device* one) { return one->mig.has_value(); };
  if (std::ranges::none_of(all, is_slice) || device.pci_address.empty()) return device.index;
  // Only the domain before the first colon varies in length: the longer number is the larger one.
  const auto place = [](const Device& one) {
    return std::pair(one.pci_address.size(), std::string_view(one.pci_address));
  };
  std::set<std::pair<std::size_t, std::string_view>> before;
  for (const Device* one : all) {
    if (one->pci_address.empty()) continue;  // it is gone, and a job holds it
    if (one->vendor == device.vendor && place(*one) < place(device)) before.insert(place(*one));
  }
  return static_cast<int>(before.size());
}

}  // namespace gflow
