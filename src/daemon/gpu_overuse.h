// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/state.h"

namespace gflow::daemon {

/// Jobs that use more memory of a GPU than was reserved for them: each attempt is told of once.
class GpuOveruse {
 public:
  /// A sentence for each attempt that the last readings show over, and that was not told of.
  [[nodiscard]] std::vector<std::string> news(const engine::State& state);

 private:
  std::set<std::pair<JobId, int>> told_;  ///< with the number of the attempt
};

}  // namespace gflow::daemon
