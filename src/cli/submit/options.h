// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "command/command.h"

namespace gflow::cli {

/// The options of gbatch, of its scripts too.
[[nodiscard]] std::vector<Option> submit_options();

}  // namespace gflow::cli
