// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "server/facade.h"

namespace gflow::slurm {

/// What of gflow Slurm does by other commands.
[[nodiscard]] std::span<const server::Elsewhere> elsewhere_of_slurm();

}  // namespace gflow::slurm
