// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/machine.h"

namespace gflow {

/// The device with this index; null if the machine has none.
[[nodiscard]] const Device* find_device(const Machine& machine, int index);

}  // namespace gflow
