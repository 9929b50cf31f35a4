// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace gflow::slurm {

/// Answers about Slurm as gflowd does about its machine, whoever its stdin gives a connection to
/// (client/cluster.h), until the end of that or a signal. Errors: NotFound where Slurm is not
/// installed, Unreachable where its controller does not answer; they are told there, too.
[[nodiscard]] Result<void> serve_api();

}  // namespace gflow::slurm
