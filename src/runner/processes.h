// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attempt/order.h"
#include "base/result.h"
#include "os/fd.h"
#include "os/process.h"

/// Processes of this machine, read from /proc.
namespace gflow::runner {

/// What lasts as long as a job does leaves so many descriptors to what comes and goes, connections
/// and files that are read: a daemon that has none left is asked in vain to end a job.
constexpr std::size_t kDescriptorsLeft = 8;

/// A pidfd; invalid if there is no such process. An error says nothing of the process.
[[nodiscard]] Result<os::Fd> open_process(int pid);
/// The same for one that is watched for as long as it runs.
[[nodiscard]] Result<os::Fd> open_to_watch(int pid);
/// Whether the process of a pidfd has ended.
[[nodiscard]] bool has_ended(const os::Fd& process);

/// How processes of an attempt are known: what an order says of it.
struct Traces {
  std::uint64_t mark = 0;            ///< of each (attempt::Order); 0 if that is not known
  std::vector<std::string> cgroups;  ///< they are members of
};
[[nodiscard]] Traces traces_of(const attempt::Order& order);

/// What is left of an attempt without a shim: members of its control groups, whatever carries its
/// mark, and what is below children of this process that are no program of gflow's: orphans of a
/// killed shim come to the daemon. Each is held by a pidfd, and was seen to
/// belong to the attempt after that was opened. All of them or an error.
[[nodiscard]] Result<std::vector<os::Fd>> survivors_of(const Traces& traces);

/// The processes below a supervisor that have not ended, which are all of its job.
[[nodiscard]] Result<std::vector<ProcessFacts>> processes_below(int supervisor);
/// Whether none of them runs: each is stopped, waits in the kernel for what cannot be interrupted
/// (and stops behind that), or is in this control group, if one is given and it is frozen.
[[nodiscard]] Result<bool> stands_still(int supervisor, const std::string& freeze_cgroup);

}  // namespace gflow::runner
