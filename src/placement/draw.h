// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gflow::placement {

/// A number that looks drawn, the same for the same two: SplitMix64 (Steele, Lea and Flood,
/// OOPSLA'14).
constexpr std::uint64_t drawn_number(std::uint64_t seed, std::uint64_t count) {
  std::uint64_t number = seed + (count + 1) * 0x9E3779B97F4A7C15U;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9U;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EBU;
  return number ^ (number >> 31);
}

}  // namespace gflow::placement
