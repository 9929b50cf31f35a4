// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "cuda/nvml_abi.h"
#include "devices/nvml/library.h"
#include "devices/nvml/process_list.h"
#include "devices/nvml/report.h"

namespace gflow::devices::nvml {

/// A compute instance of a GPU.
struct Instance {
  std::uint32_t gpu = 0;
  std::uint32_t compute = 0;
};

/// Whose processes are wanted.
struct ProcessesOf {
  abi::Handle device = nullptr;
  std::optional<Instance> instance{};  ///< only those that are of no other
  bool has_to_say = false;             ///< and not those of which none is told
};

struct Processes {
  abi::Return code = abi::kSuccess;  ///< of the list of those that compute
  std::vector<ProcessReport> all;
};
/// Those that compute, those that do through MPS and those that draw, each once.
[[nodiscard]] Processes read_processes(const Library& library,
                                       ProcessList& list,
                                       const ProcessesOf& of);

}  // namespace gflow::devices::nvml
