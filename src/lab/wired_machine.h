// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/topology.h"

namespace gflow::lab {

/// A real machine and how its GPUs are connected.
struct WiredMachine {
  std::string name;
  Topology topology;
  std::string source;  ///< where it is known from
};

/// Reads a collection of machines: {"pcie_class_GBps": {"gen4": {"PIX": 24, ...}}, "machines":
/// {NAME:
/// {"gpus", "links", "pcie", "numa", "link_GBps_per_dir", "pcie_gen", "switched", "source"}}}.
/// Errors: Usage with the machine's name.
[[nodiscard]] Result<std::vector<WiredMachine>> read_machines(std::string_view json);
/// That of DIRECTORY/topology/machines.json.
[[nodiscard]] Result<std::vector<WiredMachine>> load_machines(const std::string& directory);

}  // namespace gflow::lab
