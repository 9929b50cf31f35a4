// SPDX-License-Identifier: Apache-2.0
#include "engine/peaks.h"

#include <algorithm>

#include "base/text.h"

namespace gflow::engine {

std::string program_of(std::string_view command) {
  std::string program;
  int words = 0;
  for (const std::string_view word : split(command, ' ')) {
    if (word.empty()) continue;
    if (words == 2 || (words > 0 && word.starts_with('-'))) break;
    program += (words == 0 ? "" : " ") + std::string(word);
    ++words;
  }
  return program;
}

void Peaks::add(std::uint32_t uid, std::string_view command, Memory peak) {
  if (peak <= Memory{}) return;
  const Key key{uid, program_of(command)};
  Known& known = known_[key];
  by_use_.erase(known.used);
  known.used = ++clock_;
  by_use_.emplace(known.used, key);
  known.peak.most = std::max(known.peak.most, peak);
  ++known.peak.runs;
  if (known_.size() <= kMax) return;
  known_.erase(by_use_.begin()->second);
  by_use_.erase(by_use_.begin());
}

std::optional<Peak> Peaks::find(std::uint32_t uid, std::string_view command) const {
  const auto at = known_.find({uid, program_of(command)});
  if (at == known_.end()) return std::nullopt;
  return at->second.peak;
}

}  // namespace gflow::engine
