// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/machine.h"
#include "devices/nvml/report.h"

namespace gflow::devices::nvml {

/// How these devices, which are those of the report and those lost, are connected by the report;
/// what concerns a lost one, by the topology before. Empty if neither tells. MIG devices have no
/// links, and the paths of their GPU.
[[nodiscard]] Topology topology_after(const Machine& before,
                                      const std::vector<Device>& devices,
                                      const Report& report);

}  // namespace gflow::devices::nvml
