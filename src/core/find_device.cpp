// SPDX-License-Identifier: Apache-2.0
#include "core/find_device.h"

#include <algorithm>

namespace gflow {

const Device* find_device(const Machine& machine, int index) {
  const auto found = std::ranges::find(machine.devices, index, &Device::index);
  return found == machine.devices.end() ? nullptr : &*found;
}

}  // namespace gflow
