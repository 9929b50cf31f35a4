// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/topology.h"

namespace gflow::placement {

/// How many NUMA nodes a set spans; 0 if the node of none of them is known.
[[nodiscard]] int numa_nodes_of(const Topology& topology, std::span<const int> gpus);

/// How far apart the GPUs of a set are, less is nearer: the NUMA nodes it spans, then the mean PCIe
/// path of its pairs.
[[nodiscard]] int distance_of(const Topology& topology, std::span<const int> gpus);

}  // namespace gflow::placement
