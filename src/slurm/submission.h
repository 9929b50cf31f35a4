// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/job.h"
#include "slurm/facts.h"
#include "slurm/programs.h"

/// What somebody submits, as sbatch takes it.
namespace gflow::slurm {

/// `facts`: what Slurm has, and which jobs it knows. `comment`: what it is known again by. Errors:
/// Usage and Infeasible, for what Slurm cannot do, with what does it; NotFound for a job that it is
/// to wait for and that is not there.
[[nodiscard]] Result<Call> sbatch_call(const JobSpec& spec,
                                       const Payload& payload,
                                       const Facts& facts,
                                       const std::string& comment);

}  // namespace gflow::slurm
