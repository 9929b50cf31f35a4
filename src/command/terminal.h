// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow::cli {

enum class ColorWhen { Auto, Always, Never };
[[nodiscard]] ColorWhen parse_color(std::string_view text);

/// Whether a terminal of this kind (TERM) only writes one line below the other.
[[nodiscard]] bool is_dumb(const std::optional<std::string>& term);

/// What decides whether a stream gets colours, besides --color.
struct ColorFacts {
  bool terminal = false;
  std::optional<std::string> no_color;  ///< NO_COLOR
  std::optional<std::string> force;     ///< FORCE_COLOR or CLICOLOR_FORCE
  std::optional<std::string> term;      ///< TERM
};
[[nodiscard]] bool use_color(ColorWhen when, const ColorFacts& facts);

enum class Style { Plain, Bold, Dim, Red, Green, Yellow, Blue, Cyan, Grey };

/// Puts text into a style, or leaves it alone where there are no colours.
class Painter {
 public:
  Painter() = default;
  explicit Painter(bool colors) : colors_(colors) {}
  [[nodiscard]] std::string operator()(Style style, std::string_view text) const;
  [[nodiscard]] bool colors() const { return colors_; }

 private:
  bool colors_ = false;
};

}  // namespace gflow::cli
