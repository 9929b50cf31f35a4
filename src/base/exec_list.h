// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gflow {

/// What execve(2) and posix_spawn(3) take as arguments or environment: a null pointer stands last.
/// Into `texts`, which it does not outlive.
[[nodiscard]] inline std::vector<char*> exec_list(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace gflow
