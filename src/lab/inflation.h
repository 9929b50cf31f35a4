// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "lab/openb.h"
#include "placement/policy.h"

namespace gflow::lab {

/// What came of offering tasks one by one: one that does not fit is lost, none ever leaves.
struct InflationRun {
  AllocationCurve curve{};
  std::int64_t placed = 0;
  std::int64_t lost = 0;
};

/// The authors' "Monte-Carlo workload inflation" (their section 6.1): the tasks in this order, by a
/// policy that knows the profile of the trace. After each task, what has arrived (rejected ones
/// too) and what is allocated are noted; the value at x percent is the mean over tasks at which the
/// arrived rounds to x, each value rounded to two decimals, as the published ones are.
/// REQUIRES: rows of the order are rows of the trace.
[[nodiscard]] InflationRun run_inflation(const Openb& openb,
                                         const ArrivalOrder& order,
                                         const placement::PolicyEntry& policy,
                                         const placement::PolicyOptions& options = {});

/// A ledger with the nodes in the order of their ranks.
[[nodiscard]] placement::Ledger openb_ledger(const Openb& openb,
                                             const std::vector<std::int32_t>& ranks);

}  // namespace gflow::lab
