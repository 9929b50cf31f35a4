// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/index.h"

/// Inside of the engine: what a job gets where it is placed. Not for other modules.
namespace gflow::engine {

/// CPUs for a job on a node: those of the NUMA nodes its devices are on first, and none that
/// another job has. Empty if the node's CPUs are not known, the job did not ask for any, or it has
/// no devices: then the kernel chooses.
[[nodiscard]] std::vector<int> choose_cpus(const Index& index,
                                           const Request& request,
                                           const placement::Placement& there);

}  // namespace gflow::engine
