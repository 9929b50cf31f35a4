// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/job.h"

namespace gflow::runner {

/// The attempts that have a directory, in order.
/// Errors: the directory of attempts cannot be read; a missing one holds none.
[[nodiscard]] Result<std::vector<std::pair<JobId, int>>> list_attempts(
    const std::string& attempts_dir);

/// Of them, those that have a supervisor and have not ended: jobs that run, whoever knows of them.
/// Errors: also if that cannot be told of one of them.
[[nodiscard]] Result<std::vector<std::pair<JobId, int>>> list_supervised(
    const std::string& attempts_dir);

}  // namespace gflow::runner
