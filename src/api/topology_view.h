// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/topology.h"

namespace gflow::api {

/// MB/s of each PCIe path in one direction.
struct PathSpeeds {
  int pix = 0;
  int pxb = 0;
  int phb = 0;
  int node = 0;
  int sys = 0;
};

/// How the GPUs of a machine are connected, as JSON carries it: matrices as rows, by GPU.
struct TopologyView {
  int gpus = 0;  ///< 0: nothing is known
  std::string link_name;
  std::vector<std::vector<int>> links;
  std::vector<int> switch_links;  ///< empty: no switch
  std::vector<std::vector<PathClass>> paths;
  int link_mb_per_second = 0;
  PathSpeeds path_mb_per_second;
  std::vector<std::optional<int>> numa_nodes;
  std::vector<NumaCpus> numa_cpus;
};

[[nodiscard]] TopologyView view_of(const Topology& topology);
/// Errors: Code::Usage for rows that are no matrix.
[[nodiscard]] Result<Topology> topology_of(const TopologyView& view);

}  // namespace gflow::api
