// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace gflow::cli {

/// Where in a file the last `lines` lines begin.
[[nodiscard]] Result<std::size_t> start_of_last_lines(const std::string& path, std::size_t lines);

}  // namespace gflow::cli
