// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/job.h"
#include "slurm/facts.h"

namespace gflow::slurm {

/// "gpu:v100:2", "shard:5", "" for none: what is to be asked for on each node, so that Slurm can
/// give nothing that was not asked for. Errors: Usage and Infeasible, with what to write instead.
[[nodiscard]] Result<std::string> gres_for(const Request& request, const std::vector<Node>& nodes);

}  // namespace gflow::slurm
