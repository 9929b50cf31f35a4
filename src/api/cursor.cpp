// SPDX-License-Identifier: Apache-2.0
#include "api/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/base64.h"
#include "base/text.h"

namespace gflow::api {
namespace {

constexpr char kBegin = 'c';

/// Each part behind its length: "8:priority2:10".
std::optional<std::vector<std::string>> split_parts(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    const auto size = parse_number(text.substr(0, colon));
    if (colon == std::string_view::npos || !size || *size > text.size() - colon - 1) {
      return std::nullopt;
    }
    parts.emplace_back(text.substr(colon + 1, *size));
    text.remove_prefix(colon + 1 + *size);
  }
  return parts;
}

}  // namespace

std::string write_cursor(std::span<const std::string> parts) {
  std::string text;
  for (const std::string& part : parts) text += fmt::format("{}:{}", part.size(), part);
  std::string word = base64_encode(text);
  while (word.ends_with('=')) word.pop_back();
  std::ranges::replace(word, '+', '-');
  std::ranges::replace(word, '/', '_');
  return kBegin + word;
}

Result<std::vector<std::string>> read_cursor(std::string_view text) {
  std::string word(text.starts_with(kBegin) ? text.substr(1) : "=");
  std::ranges::replace(word, '-', '+');
  std::ranges::replace(word, '_', '/');
  while (word.size() % 4 != 0) word += '=';
  const auto bytes = base64_decode(word);
  auto parts = bytes ? split_parts(*bytes) : std::nullopt;
  if (parts) return *std::move(parts);
  return fail(Code::Usage,
              fmt::format("after must be what a page had as 'next', not '{}'",
                          printable(text.substr(0, 100))));
}

}  // namespace gflow::api
