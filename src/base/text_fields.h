// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

namespace gflow {

/// The whole text as a number; empty if it is anything else or does not fit.
template <std::integral T>
[[nodiscard]] std::optional<T> number_of(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

/// Takes what comes before the first separator off the front of the text, and the separator with
/// it.
[[nodiscard]] inline std::string_view take_field(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view field = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return field;
}

}  // namespace gflow
