// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
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
/// status pipe. What it writes to stderr is added to the file `log`.
[[nodiscard]] Result<Shim> spawn_shim(const std::string& program,
                                      const std::string& directory,
                                      const std::string& log);

/// A shim that waits for its attempt, and a process that waits with it in the control groups of the
/// attempt: `gflow-shim --standby`. Both end when this is destroyed, unless it was sent.
struct Standby {
  Shim shim;
  os::Fd orders;                    ///< through which it is told which attempt
  std::vector<std::string> groups;  ///< as Cgroups::make_ready() made them
};
/// `unified`: the first of the groups is of cgroup v2. `room`: as many bytes as the longest
/// directory it may be told.
[[nodiscard]] Result<Standby> spawn_standby(const std::string& program,
                                            const std::string& log,
                                            std::vector<std::string> groups,
                                            bool unified,
                                            std::size_t room);
/// Tells it its attempt, and what its groups are called by now, and has it go on if somebody
/// stopped it. False if it is no more.
[[nodiscard]] bool send_attempt(const Standby& standby,
                                const std::string& directory,
                                std::span<const std::string> groups);
/// Waits for the end of one that was not sent: both its processes have left the groups then.
void dismiss(Standby standby);

/// Takes note of a child's end so that no zombie stays, and says which signal killed it; 0 if none
/// did, or it is not our child.
int reap(const os::Fd& process);

/// Runs `gflow-shim --probe` on a control group and waits for its end, some milliseconds.
/// Errors: why a process cannot join it.
[[nodiscard]] Result<void> probe_cgroup(const std::string& program, const std::string& directory);
/// The same of one with a filter. Errors: why processes in it are not kept from opening `device`.
[[nodiscard]] Result<void> probe_filter(const std::string& program,
                                        const std::string& directory,
                                        const std::string& device);

}  // namespace gflow::runner
