// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/machine.h"
#include "placement/ledger.h"

namespace gflow::lab {

/// A machine of the laboratory. The one without a name is the daemon's own.
struct FleetNode {
  std::string name;
  Machine machine;
};

constexpr int kMaxNodes = 100'000;

/// "sim:8xH100", "8xH100", "sim:FILE.yaml". Errors: Usage, NotFound.
[[nodiscard]] Result<Machine> read_machine_spec(const std::string& text);
/// "64x8": so many nodes with so many GPUs each (of the model, with "64x8xA100"); "sim:8xH100" is
/// one node. One node alone has no name, others are node1, node2, ... Errors: Usage.
[[nodiscard]] Result<std::vector<FleetNode>> read_fleet(const std::string& text);

/// The machine as the engine takes those that are not the daemon's own.
[[nodiscard]] placement::Node node_of(const FleetNode& node);
/// GPUs that can be given out.
[[nodiscard]] int gpus_of(const std::vector<FleetNode>& fleet);
/// Of the node that has most.
[[nodiscard]] int max_gpus_of(const std::vector<FleetNode>& fleet);

}  // namespace gflow::lab
