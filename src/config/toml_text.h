// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/problem.h"

namespace gflow::config {

/// What has to be refused before toml++ reads it: at "[" without a name behind it, as in "[ #",
/// toml++ 3.3 ends the process, or does anything at all where it is built without assertions.
[[nodiscard]] std::optional<Problem> toml_trouble(std::string_view text, const std::string& path);

}  // namespace gflow::config
