// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gflow {

/// The version in the top CMakeLists.txt; a test compares the two.
constexpr std::string_view kVersion = "0.1.0";

}  // namespace gflow
