// SPDX-License-Identifier: Apache-2.0
#include "config/toml_text.h"

#include "base/text.h"
#include "base/translate.h"

namespace gflow::config {
namespace {

std::string_view without_blanks(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t");
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

/// Whether a line begins a table whose name does not begin as a name does.
bool is_nameless(std::string_view line) {
  line = without_blanks(line);
  if (!line.starts_with('[')) return false;
  line.remove_prefix(line.starts_with("[[") ? 2 : 1);
  line = without_blanks(line);
  if (line.empty()) return true;
  const char first = line.front();
  const bool is_letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
  constexpr std::string_view kOthers = "0123456789_-\"']";
  return !is_letter && !kOthers.contains(first);
}

}  // namespace

std::optional<Problem> toml_trouble(std::string_view text, const std::string& path) {
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (is_nameless(line)) {
      return Problem{path, number, tr("'[' without the name of a section behind it")};
    }
  }
  return std::nullopt;
}

}  // namespace gflow::config
