// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/machine.h"
#include "runner/runner.h"

namespace gflow::daemon {

/// What the engine is to know of the machine: the device source's reading, the host's CPUs and
/// memory where the source does not say, and of the processes on each device only those that are
/// not gflow's. Borrows the runner, which knows whose a process is.
[[nodiscard]] Machine machine_for_engine(const Machine& reading, const runner::Runner& runner);

}  // namespace gflow::daemon
