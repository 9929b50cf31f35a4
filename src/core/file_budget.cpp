// SPDX-License-Identifier: Apache-2.0
#include "core/file_budget.h"

#include <algorithm>

namespace gflow {

FileBudget file_budget(std::uint64_t limit) {
  constexpr std::size_t kGflowd = 48;  // the store, the loop and its threads
  constexpr std::size_t kEnoughForJobs = 4096;
  constexpr std::size_t kEnoughWatches = 500;
  const std::size_t all = limit - std::min<std::size_t>(kGflowd, limit);
  FileBudget budget;
  budget.jobs = std::max(all / 4, std::min(all / 2, kEnoughForJobs));
  budget.watches = std::min(all / 8, kEnoughWatches);
  budget.clients = all - budget.jobs - budget.watches;
  budget.logs = budget.clients / 4;
  return budget;
}

}  // namespace gflow
