// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gflow {

/// A hash that notices damage and differences, not forgery. Four chains beside each other, which a
/// processor computes at once. Each step can be undone, so that what differs in one word differs
/// for good.
class WordHash {
 public:
  static constexpr std::size_t kBlock = 32;

  /// `size` is a multiple of kBlock.
  void add(const char* data, std::size_t size);
  [[nodiscard]] std::uint64_t value() const;

 private:
  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
};

/// Size and hash of a text, in one word: "<hex>-<16 hex digits>".
[[nodiscard]] std::string digest_text(std::uint64_t size, const WordHash& hash);
[[nodiscard]] std::string digest_of(std::string_view text);

}  // namespace gflow
