// SPDX-License-Identifier: Apache-2.0
#include "engine/preemption_rules.h"

#include <algorithm>

namespace gflow::engine {

using std::chrono::seconds;

bool gives_way(const PreemptionRules& rules, std::int64_t running, std::int64_t waiting) {
  return seconds(running - waiting) > rules.hysteresis;
}

/// Within a step of service a place moves as slowly as the time itself, which waiting jobs do not
/// notice; it jumps where the next step begins.
seconds next_look(const PreemptionRules& rules, seconds ran, seconds served) {
  seconds look = until_next_step(served).value_or(std::chrono::hours(24));
  if (ran < rules.quantum) look = std::min(look, rules.quantum - ran);
  return std::max(look, seconds(1));
}

}  // namespace gflow::engine
