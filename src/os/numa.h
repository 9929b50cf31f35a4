// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gflow::os {

/// One NUMA node of this machine.
struct NumaNode {
  int node = 0;
  std::string cpus;  ///< as the kernel writes lists: "0-23,48-71"; "" for a node without CPUs

  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

/// The nodes below a directory such as the kernel's, by number; none where it is not there.
[[nodiscard]] std::vector<NumaNode> numa_nodes(
    const std::string& directory = "/sys/devices/system/node");

/// The CPUs this process may run on, ascending.
[[nodiscard]] std::vector<int> allowed_cpus();

}  // namespace gflow::os
