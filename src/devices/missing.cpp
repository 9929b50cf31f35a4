// SPDX-License-Identifier: Apache-2.0
#include "devices/missing.h"

#include <fmt/format.h>

#include <algorithm>

namespace gflow::devices {

const std::vector<std::string>& reading_names() {
  static const std::vector<std::string> names = {"memory_total",
                                                 "memory_used",
                                                 "utilization",
                                                 "temperature",
                                                 "power",
                                                 "power_limit",
                                                 "processes"};
  return names;
}

std::string missing_text(const std::vector<Missing>& missing) {
  std::vector<std::string> reasons;
  for (const Missing& one : missing) {
    if (std::ranges::find(reasons, one.why) == reasons.end()) reasons.push_back(one.why);
  }
  std::string text;
  for (const std::string& why : reasons) {
    std::string names;
    for (const Missing& one : missing) {
      if (one.why == why) names += (names.empty() ? "" : ", ") + one.reading;
    }
    std::ranges::replace(names, '_', ' ');
    text += fmt::format("{}no {} ({})", text.empty() ? "" : "; ", names, why);
  }
  return text;
}

}  // namespace gflow::devices
