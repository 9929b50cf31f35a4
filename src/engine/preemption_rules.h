// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "engine/order.h"

/// When a running job gives way to a waiting one of the same priority. Only jobs that allow it do,
/// and only if the other is so far ahead that the change is worth what it costs: the stopped job
/// loads its checkpoint again, and stands in the queue. Jobs that just started are left alone for a
/// while.
///
/// Usage: gives_way() for each running job that could make room for one that waits
/// and does not fit, and ran for its quantum, with the place it would have if it had to queue now.
/// While any job waits, look again at the earliest next_look() of the running jobs: what was served
/// changes places by time alone.
namespace gflow::engine {

struct PreemptionRules {
  std::chrono::seconds quantum{600};        ///< left alone so long after each start
  std::chrono::seconds hysteresis{60'000};  ///< how far ahead in place the other has to be

  friend bool operator==(const PreemptionRules&, const PreemptionRules&) = default;
};

/// Both as rank_of(Place). The running job was left alone for its quantum already.
[[nodiscard]] bool gives_way(const PreemptionRules& rules,
                             std::int64_t running,
                             std::int64_t waiting);

/// How long from now until gives_way() of a running job may change; never 0.
[[nodiscard]] std::chrono::seconds next_look(const PreemptionRules& rules,
                                             std::chrono::seconds ran,
                                             std::chrono::seconds served);

}  // namespace gflow::engine
