// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/machine.h"
#include "devices/nvml/report.h"

namespace gflow::devices::nvml {

/// How the devices of `machine`, which are those of the report and those lost, are connected by the
/// report; what concerns a lost one, by the machine's topology before. Empty if neither tells.
[[nodiscard]] Topology topology_after(const Machine& machine, const Report& report);

}  // namespace gflow::devices::nvml
