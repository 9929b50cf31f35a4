// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/topology.h"

namespace gflow::placement {

/// A set for a machine that has too many GPUs to look at all sets. From every free GPU a set is
/// grown by the GPU with the fastest paths to those it has, on the nearest NUMA node where that is
/// the same. Of these sets the one with the fastest ring wins, then the one on the fewest NUMA
/// nodes, then the one that leaves the fewest free GPUs on the nodes it touches (so that whole
/// nodes stay whole), then the nearest, then the lowest indices.
/// REQUIRES: `free` ascending, 1 <= count <= free.size().
[[nodiscard]] std::vector<int> grown_set(const Topology& topology,
                                         const std::vector<int>& free,
                                         int count);

}  // namespace gflow::placement
