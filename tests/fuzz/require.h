// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace gflow::fuzz {

/// The bytes of one input.
inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process, which is what the fuzzer notices, if a property of the code under test is
/// broken.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace gflow::fuzz
