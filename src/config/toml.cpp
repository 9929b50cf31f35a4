// SPDX-License-Identifier: Apache-2.0
#include "config/toml.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "base/text.h"
#include "base/translate.h"

namespace gflow::config {
namespace {

bool confuses(std::string_view text) {
  try {
    (void)toml::parse(text);
  } catch (const toml::parse_error&) {
    return false;
  } catch (const TomlConfusion&) {
    return true;
  }
  return false;
}

/// The line, from 1, at which a text begins to confuse: what is behind it is not looked at.
int line_that_confuses(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = text.find('\n'); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    ends.push_back(at + 1);
  }
  ends.push_back(text.size());
  const auto first = std::ranges::partition_point(
      ends, [text](std::size_t end) { return !confuses(text.substr(0, end)); });
  const auto before = static_cast<int>(first - ends.begin());
  return std::min(before + 1, static_cast<int>(ends.size()));
}

}  // namespace

std::expected<toml::table, Problem> parse_toml(std::string_view text, const std::string& path) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return std::unexpected(
        Problem{path, static_cast<int>(error.source().begin.line), printable(error.description())});
  } catch (const TomlConfusion&) {
    return std::unexpected(Problem{
        path, line_that_confuses(text), tr("not TOML: a name, a value or a bracket is missing")});
  }
}

}  // namespace gflow::config
