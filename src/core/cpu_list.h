// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gflow {

/// Reads a list of CPUs as the kernel writes it: "0-23,48-71"; "" is none. Ascending, without
/// duplicates. Errors: Code::Usage, also for numbers beyond 65,535.
[[nodiscard]] Result<std::vector<int>> parse_cpu_list(std::string_view text);

/// The inverse: "0-3,8". Takes ascending numbers.
[[nodiscard]] std::string cpu_list_text(const std::vector<int>& cpus);

}  // namespace gflow
