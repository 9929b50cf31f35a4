// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gflow::store {

/// Numbers in their order as text, runs of successors folded: 5,6,7,20 is "5-7,20". None is "".
[[nodiscard]] std::string write_numbers(const std::vector<std::uint64_t>& numbers);
/// Reads what write_numbers() writes; empty for anything else, and for more than 10 million
/// numbers.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> read_numbers(std::string_view text);

}  // namespace gflow::store
