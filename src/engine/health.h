// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "core/node_health.h"

namespace gflow::engine {

/// Whether nothing may be launched there now; `lived` as in Job::lived.
[[nodiscard]] inline bool is_closed(const NodeHealth& health, std::chrono::milliseconds lived) {
  return health.trial.has_value() || lived < health.retry_at;
}

}  // namespace gflow::engine
