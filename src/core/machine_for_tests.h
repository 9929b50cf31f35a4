// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "core/machine.h"

namespace gflow {

/// A node as most tests need one: so many GPUs alike, free and of known memory, 64 CPUs, 256 GiB. A
/// test changes what it is about.
inline Machine machine_with_gpus(std::string name,
                                 int gpus,
                                 const std::string& model,
                                 Memory memory) {
  Machine machine;
  machine.name = std::move(name);
  machine.cpus = 64;
  machine.memory = Memory::gib(256);
  for (int index = 0; index < gpus; ++index) {
    Device device;
    device.index = index;
    device.vendor = "nvidia";
    device.model = model;
    device.memory_total = memory;
    machine.devices.push_back(std::move(device));
  }
  return machine;
}

}  // namespace gflow
