// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gflow {

[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] constexpr char ascii_upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

/// The pieces between separators; "a,,b" has an empty one in the middle, "" has one empty piece.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
[[nodiscard]] std::string join(std::span<const std::string> pieces, std::string_view separator);

/// The whole text as a number without sign, or an empty optional. No spaces, no overflow.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text);

/// Ascending numbers in few characters: "3-20", "1-2,4", "8".
template <typename Number>
[[nodiscard]] std::string ranges_text(std::span<const Number> numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[i]);
    if (last > i) text += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

/// The text fit for a terminal and for one line: control characters, those that turn the direction
/// of text, and bytes that are not UTF-8 become \xNN, a tab or a line end \t or \n. Never longer
/// than 4 times the input.
[[nodiscard]] std::string printable(std::string_view text);
/// True for well-formed UTF-8 without NUL.
[[nodiscard]] bool is_utf8(std::string_view text);

/// The first character that cannot be seen, or that joins the one before it where there is none:
/// what makes names alike that are not the same.
[[nodiscard]] std::optional<char32_t> first_unseen(std::string_view text);

/// The arguments as one shell line that a POSIX shell splits back into the same arguments.
[[nodiscard]] std::string shell_quote(std::span<const std::string> arguments);
/// Splits as a POSIX shell does for plain words, quotes and comments, without expansion.
/// Errors: Code::Usage for an open quote.
[[nodiscard]] Result<std::vector<std::string>> shell_split(std::string_view line);

/// The candidate nearest to the word by edit distance, if near enough to be worth saying.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 std::span<const std::string> candidates);

/// `*` and `?` wildcards over the whole text.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view text);

/// Columns a terminal uses for text that went through printable(): 2 for wide (CJK) characters, 0
/// for combining ones.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// The text in at most so many columns: "…" stands for what was left out at its end, or in its
/// middle, so that both ends can be read. The whole text where it fits.
[[nodiscard]] std::string cut_end(std::string_view text, std::size_t width);
[[nodiscard]] std::string cut_middle(std::string_view text, std::size_t width);
/// The same with every number whole, or not there at all: words are shortened, the longest most;
/// where all numbers have no room even so, the end is left out.
[[nodiscard]] std::string cut_words(std::string_view text, std::size_t width);

/// The text as lines of at most so many columns, but never without a character: broken at spaces,
/// and within a word that alone is longer.
[[nodiscard]] std::vector<std::string_view> wrapped(std::string_view text, std::size_t width);

}  // namespace gflow
