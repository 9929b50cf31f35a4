// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shim/fd.h"

namespace gflow::shim {

/// The whole life of a shim: lock, claim, run the job of the attempt's directory, leave its exit
/// record, end. `status` is the runner's pipe; that nobody reads it any more does no harm.
/// The exit status of the program: 0 also if the attempt was revoked.
[[nodiscard]] int run_attempt(const std::string& directory, const Fd& status);

/// The same, before there is an attempt: makes a process ready in the control groups, takes the
/// directory of the attempt and the names the groups have by then from `orders` (one message, each
/// ended by a NUL), and shows that directory as its argument. Ends when nobody can send it any
/// more. Arguments: --standby, room for the directory, the group of cgroup v2 or "", the others.
[[nodiscard]] int stand_by(int count, char** arguments, Fd orders, const Fd& status);

/// Joins each of the control group directories, as a job would; 0 if that worked, else errno.
[[nodiscard]] int probe_cgroups(int count, char** directories);
/// Joins one, and finds out whether that keeps it from opening a device: 0 if it does, else errno,
/// EBADE if it could be opened.
[[nodiscard]] int probe_filter(const char* group, const char* device);

}  // namespace gflow::shim
