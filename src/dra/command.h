// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command/command.h"

namespace gflow::dra {

/// gflow-dra-driver: gives containers of a node what was allocated to the claims of their pods.
[[nodiscard]] cli::Command dra_driver_command();

}  // namespace gflow::dra
