// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace gflow::utf8 {

/// One character at the front of a text. An invalid byte is a Char of length 1 that is not valid.
struct Char {
  char32_t point = 0;
  std::size_t length = 1;
  bool valid = false;
};

/// The first character of a text that is not empty. Overlong forms and surrogates are invalid.
[[nodiscard]] Char next(std::string_view text);

/// How many characters a text has; an invalid byte counts as one.
[[nodiscard]] std::size_t length(std::string_view text);

/// Terminal columns of a character: 0 for combining marks, 2 for East Asian wide, else 1.
[[nodiscard]] std::size_t columns(char32_t point);

/// A mark, a variation or a zero-width joiner: it changes the character before it.
[[nodiscard]] bool joins(char32_t point);
/// A control character, a line separator, or what changes the direction of the text around it
/// (CVE-2021-42574): what a terminal obeys, or shows other than it is.
[[nodiscard]] bool is_control(char32_t point);
/// A control, a blank that looks like another one, or nothing at all.
[[nodiscard]] bool is_unseen(char32_t point);

}  // namespace gflow::utf8
