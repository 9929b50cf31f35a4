// SPDX-License-Identifier: Apache-2.0
#include "command/terminal.h"

#include <fmt/format.h>

namespace gflow::cli {

ColorWhen parse_color(std::string_view text) {
  if (text == "always") return ColorWhen::Always;
  if (text == "never") return ColorWhen::Never;
  return ColorWhen::Auto;
}

bool is_dumb(const std::optional<std::string>& term) {
  return !term || term->empty() || *term == "dumb";
}

bool use_color(ColorWhen when, const ColorFacts& facts) {
  if (when != ColorWhen::Auto) return when == ColorWhen::Always;
  // https://no-color.org: set and not empty
  if (facts.no_color && !facts.no_color->empty()) return false;
  if (facts.force && !facts.force->empty() && *facts.force != "0") return true;
  return facts.terminal && !is_dumb(facts.term);
}

std::string Painter::operator()(Style style, std::string_view text) const {
  std::string_view code;
  switch (style) {
    case Style::Plain:
      break;
    case Style::Bold:
      code = "1";
      break;
    case Style::Dim:
      code = "2";
      break;
    case Style::Red:
      code = "31";
      break;
    case Style::Green:
      code = "32";
      break;
    case Style::Yellow:
      code = "33";
      break;
    case Style::Blue:
      code = "34";
      break;
    case Style::Cyan:
      code = "36";
      break;
    case Style::Grey:
      code = "90";
      break;
  }
  if (!colors_ || code.empty() || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace gflow::cli
