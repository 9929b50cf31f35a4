// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "server/routes.h"

namespace gflow::slurm {

/// Whether a route is for what is done here. Errors: Usage, saying what does it in Slurm.
[[nodiscard]] Result<void> is_done_here(const server::Route& route);

}  // namespace gflow::slurm
