// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/machine.h"
#include "engine/state.h"

namespace gflow::daemon {

/// The devices that attempts under way have on this node, as their files tell, and of those that
/// move the jobs themselves: index, UUID and vendor. One whose order cannot be read is left out,
/// and said in the log: what it holds is known by index alone.
[[nodiscard]] std::vector<Device> held_devices(const engine::State& state,
                                               const std::string& attempts_dir,
                                               const std::string& node);

/// Gives jobs under way the GPU that their attempts on disk say they were moved to. A database that
/// was rebuilt, or put back as it was before, has them on another one.
void take_over_moves(std::span<Job> jobs, const std::string& attempts_dir);

}  // namespace gflow::daemon
