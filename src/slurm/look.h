// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include "base/result.h"
#include "slurm/facts.h"

namespace gflow::slurm {

/// What Slurm has now. Errors: those of its commands; all of it was told or nothing is believed.
[[nodiscard]] Result<Facts> read_facts();

/// How long Slurm keeps a job that ended. Errors: as above; NotFound.
[[nodiscard]] Result<std::chrono::seconds> read_job_age();

/// This user's jobs alone, without what only scontrol tells.
[[nodiscard]] Result<std::vector<Job>> read_own_jobs();

}  // namespace gflow::slurm
