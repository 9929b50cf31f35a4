// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/machine.h"
#include "engine/state.h"

namespace gflow::daemon {

/// The devices that attempts under way were granted on this node, as their order files tell: index,
/// UUID and vendor. One whose order cannot be read is left out, and said in the log: what it holds
/// is known by index alone.
[[nodiscard]] std::vector<Device> held_devices(const engine::State& state,
                                               const std::string& attempts_dir,
                                               const std::string& node);

}  // namespace gflow::daemon
