// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace gflow {

/// Part of one GPU's compute, exact: 10,000 parts are the whole. Sums may pass the whole, and
/// differences may go below nothing; a request is always from 1 part to the whole.
struct Share {
  std::int32_t parts = 0;

  static constexpr std::int32_t kWholeParts = 10'000;
  static constexpr Share whole() { return Share{kWholeParts}; }
  static constexpr Share percent(int n) { return Share{n * 100}; }
  static constexpr Share milli(int n) { return Share{n * 10}; }

  friend constexpr auto operator<=>(Share, Share) = default;
  friend constexpr Share operator+(Share a, Share b) { return Share{a.parts + b.parts}; }
  friend constexpr Share operator-(Share a, Share b) { return Share{a.parts - b.parts}; }
  constexpr Share& operator+=(Share other) {
    parts += other.parts;
    return *this;
  }
  constexpr Share& operator-=(Share other) {
    parts -= other.parts;
    return *this;
  }
};

/// Shortest exact decimal: "1", "0.5", "0.3333", "-0.25".
[[nodiscard]] std::string share_text(Share share);

}  // namespace gflow
