// SPDX-License-Identifier: Apache-2.0
#include "api/byte_range.h"

#include <algorithm>

#include "base/text.h"

namespace gflow::api {

AskedRange read_range(std::string_view header, std::uint64_t size) {
  using Kind = AskedRange::Kind;
  constexpr std::string_view kUnit = "bytes=";
  if (to_lower(header.substr(0, kUnit.size())) != kUnit) return {};
  const std::string_view range = trim(header.substr(kUnit.size()));
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view from = range.substr(0, dash);
  const std::string_view to = range.substr(dash + 1);
  const auto first = parse_number(from);
  const auto last = parse_number(to);
  if ((!first && !from.empty()) || (!last && !to.empty()) || (!first && !last)) return {};
  if (!first) {
    if (*last == 0 || size == 0) return {Kind::Outside, {}};
    return {Kind::Part, {size - std::min(*last, size), size - 1}};
  }
  if (last && *last < *first) return {};
  if (*first >= size) return {Kind::Outside, {}};
  return {Kind::Part, {*first, std::min(last.value_or(size - 1), size - 1)}};
}

}  // namespace gflow::api
