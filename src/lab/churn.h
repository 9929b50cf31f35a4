// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lab/openb.h"
#include "placement/policy.h"

namespace gflow::lab {

/// Tasks that come and go. Arrivals are a Poisson process, kinds drawn uniformly from the trace,
/// lifetimes exponential; the unit of time is the mean lifetime. What is drawn depends on the seed
/// alone, so that all policies get the same.
struct ChurnProtocol {
  int arrivals = 80'000;
  double load = 1.0;     ///< GPU compute asked for at a time, by the capacity
  double warm_up = 3.0;  ///< not measured
};

struct ChurnRun {
  double allocation = 0;       ///< of GPU compute, mean over time, percent
  double demand_accepted = 0;  ///< GPU compute of the tasks placed, of all that arrived, percent
  double tasks_accepted = 0;   ///< tasks placed, of all that arrived, percent
};

/// A task that does not fit when it arrives is lost. The policy knows the profile of the trace.
[[nodiscard]] ChurnRun run_churn(const Openb& openb,
                                 std::uint64_t seed,
                                 const placement::PolicyEntry& policy,
                                 const ChurnProtocol& protocol = {});

}  // namespace gflow::lab
