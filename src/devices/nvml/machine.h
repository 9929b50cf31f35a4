// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/machine.h"
#include "devices/nvml/report.h"

namespace gflow::devices::nvml {

/// The machine after a report that has no error. A GPU that is cut by MIG is its MIG devices. A
/// device is known by its UUID (its address where it has none) and keeps its place in the list. A
/// GPU that is not in the report any more stays, lost and without readings, and so do its MIG
/// devices. Of a GPU that is, those that are not any more are left out, and those behind them move
/// up: which index a device has for others says DeviceIndices. A new one comes last.
[[nodiscard]] Machine machine_after(const Machine& before, const Report& report);

/// The machine when the driver has stopped answering: all that a GPU is, nothing that was measured,
/// and no GPU to be handed out, as nobody knows what runs on it.
[[nodiscard]] Machine machine_stale(const Machine& before, const std::string& note);

}  // namespace gflow::devices::nvml
