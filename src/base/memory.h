// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow {

/// An amount of memory, host or device, in bytes. Never negative in a request.
struct Memory {
  std::int64_t bytes = 0;

  static constexpr Memory mib(std::int64_t n) { return Memory{n << 20}; }
  static constexpr Memory gib(std::int64_t n) { return Memory{n << 30}; }

  friend constexpr auto operator<=>(Memory, Memory) = default;
  friend constexpr Memory operator+(Memory a, Memory b) { return Memory{a.bytes + b.bytes}; }
  friend constexpr Memory operator-(Memory a, Memory b) { return Memory{a.bytes - b.bytes}; }
  constexpr Memory& operator+=(Memory other) {
    bytes += other.bytes;
    return *this;
  }
  constexpr Memory& operator-=(Memory other) {
    bytes -= other.bytes;
    return *this;
  }
};

/// Reads "512" (MiB), "512M", "20G", "1.5GiB", "1T", "2048K"; units are binary and of either case.
/// Errors: Code::Usage naming the text, for anything else, zero, negative or over 2^62 bytes.
[[nodiscard]] Result<Memory> parse_memory(std::string_view text);

/// Shortest exact text in the largest binary unit with at most two decimals: "8G", "1.5G", "512M".
[[nodiscard]] std::string memory_text(Memory memory);
/// The same with as many digits as tell it from another that is shown beside it: "8193M" beside
/// "8G".
[[nodiscard]] std::string memory_text(Memory memory, Memory beside);

}  // namespace gflow
