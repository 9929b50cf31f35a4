// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "command/command.h"

namespace gflow::cli {

/// What gqueue takes: which jobs are selected, then how they are listed.
[[nodiscard]] std::vector<Option> gqueue_options();

}  // namespace gflow::cli
