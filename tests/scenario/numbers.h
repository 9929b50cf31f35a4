// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <map>
#include <string>

#include "base/result.h"

namespace gflow::scenario {

/// The number at a key, which may be negative; `otherwise` if the key is not there.
[[nodiscard]] inline Result<int> whole_number(const std::map<std::string, std::string>& keys,
                                              const std::string& key,
                                              int otherwise) {
  const auto at = keys.find(key);
  if (at == keys.end()) return otherwise;
  int value = 0;
  const char* last = at->second.data() + at->second.size();
  const auto [end, error] = std::from_chars(at->second.data(), last, value);
  if (error != std::errc{} || end != last) return fail(Code::Usage, key + " is not a number");
  return value;
}

}  // namespace gflow::scenario
