// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/machine.h"

namespace gflow {

/// The device with this index; null if the machine has none.
[[nodiscard]] const Device* find_device(const Machine& machine, int index);

/// The number that other tools know its GPU by: its index, as these count in PCI order, too. Where
/// GPUs are cut by MIG they count the GPUs alone, so that it is the place of its address among
/// `all` of the node.
[[nodiscard]] int gpu_number(const Device& device, const std::vector<const Device*>& all);

}  // namespace gflow
