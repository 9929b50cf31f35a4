// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gflow::cli {

/// One point of a sweep: names and values, in the order the parameters were given.
using Point = std::vector<std::pair<std::string, std::string>>;

/// All combinations of "--param lr=0.1,0.2" and "--param seed=1:5[:2]", the last one fastest, for
/// every row of a table (a CSV file with a header) if there is one. One empty point for nothing.
/// Errors: Usage for what is not understood or more than 10,000 points.
[[nodiscard]] Result<std::vector<Point>> sweep_points(std::span<const std::string> params,
                                                      std::string_view csv);

/// Puts the values in for "{name}", for the names of the point only; other braces are left alone.
[[nodiscard]] std::string substitute(std::string_view text, const Point& point);

/// The rows of a CSV text (RFC 4180).
[[nodiscard]] Result<std::vector<std::vector<std::string>>> read_csv(std::string_view text);

}  // namespace gflow::cli
