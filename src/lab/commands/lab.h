// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command/command.h"

namespace gflow::cli {

/// `gflow lab` with its experiments.
[[nodiscard]] Command lab_command();

}  // namespace gflow::cli
