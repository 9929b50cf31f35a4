// SPDX-License-Identifier: Apache-2.0
#include "core/description.h"

#include <algorithm>
#include <array>

#include "base/translate.h"

namespace gflow {

std::string field_words(std::string_view name) {
  constexpr auto kUnits = std::to_array<std::string_view>({"_seconds", "_bytes", "_parts", "_ms"});
  for (const std::string_view unit : kUnits) {
    if (name.ends_with(unit)) name.remove_suffix(unit.size());
  }
  std::string words(name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string field_label(std::string_view name) { return tr(field_words(name)); }

}  // namespace gflow
