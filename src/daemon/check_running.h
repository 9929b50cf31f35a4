// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/result.h"
#include "core/job.h"
#include "os/paths.h"

namespace gflow::daemon {

/// Whether the jobs of the store, by ascending id, are all that run: one it does not know would be
/// left without a daemon, and its GPUs be given to another. Errors: Damaged naming those it does
/// not know, with the way out.
[[nodiscard]] Result<void> check_running(std::span<const Job> jobs, const os::Paths& paths);

}  // namespace gflow::daemon
