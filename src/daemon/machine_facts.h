// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/job.h"
#include "core/machine.h"
#include "engine/event.h"

namespace gflow::daemon {

/// The job a process of this machine belongs to; empty if it is not gflow's.
using OwnerOf = std::function<std::optional<JobId>(int pid)>;
/// The jobs that hold a device of this machine, by its index.
using HoldersOf = std::function<std::vector<JobId>(int gpu)>;

/// What the engine is to know of the machine: the device source's reading, the host's CPUs and
/// memory where the source does not say; and of the processes on each device, what those of jobs
/// that hold it use, by job, and the others.
[[nodiscard]] Machine machine_for_engine(const Machine& reading,
                                         const OwnerOf& owner_of,
                                         const HoldersOf& holders_of);

/// A GPU of which nothing is cut, and that is cut as jobs ask for it, is room and no device.
void leave_out_uncut(Machine& machine, const engine::Policy& policy);

/// Takes the processes of jobs that hold the device off the list and counts them in `uses`, by job.
/// Those of other jobs stay, with their job: the device is not theirs.
void tell_jobs_apart(Device& device, const OwnerOf& owner_of, const std::vector<JobId>& holders);

/// The CPUs of each NUMA node of this machine that this process may use; one node with all of them
/// where the kernel tells of none.
[[nodiscard]] std::vector<NumaCpus> host_cpus();

}  // namespace gflow::daemon
