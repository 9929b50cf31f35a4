// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/topology.h"
#include "devices/sim/machine_file.h"

namespace gflow::devices::sim {

/// How the machine that is sold with these GPUs connects them: 8 V100 as a DGX-1 (hybrid cube
/// mesh), 16 as a DGX-2, H100 and A100 and their like by NVSwitch, MI300X all to all, MI250X as an
/// eight-GCD node; others, and models mixed, by PCIe. Devices as placed() gives them.
[[nodiscard]] Topology links_of(const std::vector<SimDevice>& devices);

/// The same from a matrix as `nvidia-smi topo -m` prints it. NUMA nodes it tells are given to the
/// devices. Errors: Code::Usage for what parse_topology() refuses, and for a matrix of another
/// number of GPUs.
[[nodiscard]] Result<Topology> links_from(const std::string& matrix,
                                          std::vector<SimDevice>& devices);

}  // namespace gflow::devices::sim
