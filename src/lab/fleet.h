// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/machine.h"

namespace gflow::lab {

constexpr int kMaxNodes = 100'000;

/// "sim:8xH100", "8xH100", "sim:FILE.yaml". Errors: Usage, NotFound.
[[nodiscard]] Result<Machine> read_machine_spec(const std::string& text);
/// "64x8": so many nodes with so many GPUs each (of the model, with "64x8xA100"); "sim:8xH100" is
/// one node. They are called node1, node2, ... Errors: Usage.
[[nodiscard]] Result<std::vector<Machine>> read_fleet(const std::string& text);

/// GPUs that can be given out.
[[nodiscard]] int gpus_of(const std::vector<Machine>& fleet);
/// Of the node that has most.
[[nodiscard]] int max_gpus_of(const std::vector<Machine>& fleet);

}  // namespace gflow::lab
