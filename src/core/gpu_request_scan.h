// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/gpu_request.h"

/// The characters of a request for GPUs, before anything is known of what they mean.
namespace gflow::gpu_request {

constexpr char kStrange = '\x01';  ///< stands for a character no request has

/// A stretch of the text, by characters.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] bool empty() const { return begin == end; }
};

/// A number as it stands: "1.50" has whole 1 and decimals "5".
struct Decimal {
  std::uint64_t whole = 0;
  std::string decimals = {};  ///< without zeros at the end
  bool pointed = false;
  Piece at = {};
  [[nodiscard]] bool is_whole() const { return decimals.empty(); }
};

/// What stands between two commas.
struct Part {
  Piece body;
  std::optional<Piece> kind;  ///< what is in its brackets
};

using Mistake = GpuRequestMistake;
template <typename T>
using Read = std::expected<T, Mistake>;

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A text and the same in plain ASCII, character by character. The text outlives it.
class Scan {
 public:
  explicit Scan(std::string_view text);

  [[nodiscard]] std::size_t size() const { return plain_.size(); }
  [[nodiscard]] char at(std::size_t i) const { return plain_[i]; }
  [[nodiscard]] std::size_t find(char c) const { return plain_.find(c); }
  [[nodiscard]] std::string_view view(Piece piece) const {
    return std::string_view(plain_).substr(piece.begin, piece.end - piece.begin);
  }
  /// As it was typed, fit to be printed.
  [[nodiscard]] std::string typed(Piece piece) const;
  [[nodiscard]] Piece trimmed(Piece piece) const;
  [[nodiscard]] std::vector<Piece> split(Piece piece, char separator) const;
  [[nodiscard]] std::unexpected<Mistake> mistake(Piece at,
                                                 std::string what,
                                                 std::string instead = "") const;

  /// The parts at the commas outside of brackets.
  [[nodiscard]] Read<std::vector<Part>> parts(Piece piece) const;
  [[nodiscard]] Read<Piece> bracket(std::size_t open, Piece within) const;
  /// The number a piece begins with, without its sign; empty if it begins with none.
  [[nodiscard]] Read<std::optional<Decimal>> leading_number(Piece piece) const;

 private:
  std::string_view text_;
  std::string plain_;               // one ASCII character for each character
  std::vector<std::size_t> bytes_;  // where each begins in text_, and the end
};

}  // namespace gflow::gpu_request
