// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/memory.h"

namespace gflow::os {

/// What this process takes.
struct Usage {
  std::optional<double> cpu_seconds;  ///< user and system, of all its threads
  std::optional<Memory> resident;
};
[[nodiscard]] Usage own_usage();

}  // namespace gflow::os
