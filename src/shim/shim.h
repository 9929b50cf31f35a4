// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shim/fd.h"

namespace gflow::shim {

/// The whole life of a shim: lock, claim, run the job of the attempt's directory, leave its exit
/// record, end. `status` is the runner's pipe; that nobody reads it any more does no harm.
/// The exit status of the program: 0 also if the attempt was revoked.
[[nodiscard]] int run_attempt(const std::string& directory, const Fd& status);

/// Joins each of the control group directories, as a job would; 0 if that worked, else errno.
[[nodiscard]] int probe_cgroups(int count, char** directories);

}  // namespace gflow::shim
