// SPDX-License-Identifier: Apache-2.0
#include "os/file_budget.h"

#include <sys/resource.h>

#include <algorithm>

namespace gflow::os {

FileBudget file_budget() {
  constexpr std::size_t kEnoughForJobs = 4096;
  constexpr std::size_t kEnoughWatches = 500;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::size_t all = limit.rlim_cur - std::min<std::size_t>(kOwnFiles, limit.rlim_cur);
  FileBudget budget;
  budget.jobs = std::max(all / 4, std::min(all / 2, kEnoughForJobs));
  budget.watches = std::min(all / 8, kEnoughWatches);
  budget.clients = all - budget.jobs - budget.watches;
  budget.logs = budget.clients / 4;
  return budget;
}

}  // namespace gflow::os
