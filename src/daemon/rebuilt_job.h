// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "core/job.h"

namespace gflow::daemon {

/// A job as far as the files of one of its attempts tell.
struct RebuiltJob {
  Job job;  ///< Starting in that attempt: whether it runs or has ended is found out as ever
  Payload payload;
};

/// Reads the order of an attempt. What it does not say (priority, dependencies, retries, group) is
/// as for a job that asked for nothing. Empty if there is no order that can be understood.
[[nodiscard]] Result<std::optional<RebuiltJob>> rebuild_job(const std::string& attempts_dir,
                                                            JobId job,
                                                            int attempt,
                                                            Now now);

}  // namespace gflow::daemon
