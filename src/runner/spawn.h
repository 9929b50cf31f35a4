// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::runner {

/// A shim just started.
struct Shim {
  int pid = 0;
  os::Fd process;  ///< pidfd; invalid if none could be had: the pid stays its own until reap()
  os::Fd status;   ///< read end of its status pipe, not blocking
};

/// Starts a shim in a session of its own with a fixed small environment, all signals blocked (it
/// unblocks what it handles, so that none can reach it before) and no descriptor of ours but the
/// status pipe. What it writes to stderr goes to `shim.log` in the attempt's directory.
[[nodiscard]] Result<Shim> spawn_shim(const std::string& program, const std::string& directory);

/// Takes note of a child's end so that no zombie stays. Nothing happens if it is not our child.
void reap(const os::Fd& process);

/// Runs `gflow-shim --probe` on a control group and waits for its end, some milliseconds.
/// Errors: why a process cannot join it.
[[nodiscard]] Result<void> probe_cgroup(const std::string& program, const std::string& directory);

}  // namespace gflow::runner
