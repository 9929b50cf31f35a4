// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "api/types.h"
#include "base/id.h"
#include "base/result.h"

namespace gflow::slurm {

/// Has sbatch submit all of them, one after the other, and tells their numbers. What was submitted
/// by the same key before is not submitted again. Errors: those of submission.h, before anything is
/// submitted; KeyReused; those of sbatch, with which jobs were submitted before.
[[nodiscard]] Result<std::vector<JobId>> submit_all(const api::SubmitRequest& request);

}  // namespace gflow::slurm
