// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gflow::api {

/// Bytes `first` to `last`, both included.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// What a Range header asks for of something of `size` bytes.
struct AskedRange {
  /// Whole: there is none, or one to be passed over, as RFC 9110 has it: of another unit, of
  /// several ranges, not understood.
  enum class Kind { Whole, Part, Outside } kind = Kind::Whole;
  ByteRange part;  ///< of Part: within the size

  friend bool operator==(const AskedRange&, const AskedRange&) = default;
};
/// "bytes=0-499", "bytes=500-", "bytes=-500".
[[nodiscard]] AskedRange read_range(std::string_view header, std::uint64_t size);

}  // namespace gflow::api
