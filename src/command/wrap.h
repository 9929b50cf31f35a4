// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Texts for screens of so many columns, of which a Chinese character takes two.
namespace gflow::cli {

/// Breaks text between words into lines of at most `width` columns; line ends in it are kept.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// Lines that are too wide for a screen of so many columns are broken, at a gap of two spaces or
/// more where there is one, else between words, and go on below where they began, behind a number
/// such as " 1.  ". What paints them takes no columns. 0: no screen, nothing is broken.
[[nodiscard]] std::string fit_lines(std::string_view text, std::size_t columns);

/// A label and its text on one line; what is too long for a screen of so many columns goes on below
/// where the text began, or deeper than the label where that leaves no room for words. 0: no
/// screen.
[[nodiscard]] std::string labelled(std::string_view label,
                                   std::string_view text,
                                   std::size_t columns);

}  // namespace gflow::cli
