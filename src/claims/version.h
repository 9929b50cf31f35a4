// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gflow::claims {

/// A semantic version (semver.org): "1.2.3-rc.1+build". What stands behind + says nothing of the
/// order.
struct Version {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  std::uint64_t patch = 0;
  std::vector<std::string> before{};  ///< of a version that is not out yet: {"rc", "1"}
};

/// Errors: Usage for what is none.
[[nodiscard]] Result<Version> read_version(std::string_view text);
[[nodiscard]] std::strong_ordering compare(const Version& a, const Version& b);

}  // namespace gflow::claims
