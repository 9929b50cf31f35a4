// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"

namespace gflow::cli {

/// "INT", "SIGINT", "int" or "2". Errors: Usage for anything else.
[[nodiscard]] Result<int> parse_signal(std::string_view text);

}  // namespace gflow::cli
