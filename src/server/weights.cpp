// SPDX-License-Identifier: Apache-2.0
#include "server/weights.h"

#include <charconv>

#include "base/text.h"

namespace gflow::server {
namespace {

/// Of the parameters of one word: "q=0.5". One that cannot be read is as good as none.
double weight_of(std::string_view parameters) {
  for (const std::string_view parameter : split(parameters, ';')) {
    const std::string_view text = trim(parameter);
    if (!text.starts_with("q=") && !text.starts_with("Q=")) continue;
    double weight = 1;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), weight);
    return error == std::errc() && end == text.data() + text.size() ? weight : 1;
  }
  return 1;
}

}  // namespace

std::optional<double> weight_in(std::string_view header, std::string_view word) {
  for (const std::string_view part : split(header, ',')) {
    const std::size_t semicolon = part.find(';');
    if (to_lower(trim(part.substr(0, semicolon))) != word) continue;
    return semicolon == std::string_view::npos ? 1 : weight_of(part.substr(semicolon + 1));
  }
  return std::nullopt;
}

}  // namespace gflow::server
