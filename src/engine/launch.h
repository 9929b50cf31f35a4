// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/launch.h"
#include "engine/index.h"

/// Inside of the engine: what an attempt is granted, in words its node understands.
namespace gflow::engine {

/// The order for the attempt a job is in. REQUIRES: the job is Starting, on a node that was told
/// of.
[[nodiscard]] LaunchOrder launch_order(const Index& index, const Job& job);

}  // namespace gflow::engine
