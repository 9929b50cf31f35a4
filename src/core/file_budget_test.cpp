// SPDX-License-Identifier: Apache-2.0
#include "core/file_budget.h"

#include <gtest/gtest.h>

#include <limits>

namespace gflow {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

TEST(FileBudget, IsOfALimit) {
  const std::pair<std::uint64_t, FileBudget> cases[] = {
      {0, {}},
      {48, {}},
      {kLeastFiles, {.jobs = 40, .watches = 10, .clients = 30, .logs = 7}},
      {1024, {.jobs = 488, .watches = 122, .clients = 366, .logs = 91}},
      {20'000, {.jobs = 4988, .watches = 500, .clients = 14'464, .logs = 3616}},
  };
  for (const auto& [limit, budget] : cases) EXPECT_EQ(file_budget(limit), budget) << limit;
}

TEST(FileBudget, HasAPartForEachAndNoMoreThanThereAre) {
  for (const std::uint64_t limit : {kLeastFiles, 200UL, 4096UL, kUnlimited}) {
    const FileBudget budget = file_budget(limit);
    EXPECT_GE(budget.jobs, 8U) << limit;
    EXPECT_GE(budget.watches, 2U) << limit;
    EXPECT_GE(budget.logs, 1U) << limit;
    EXPECT_LE(budget.logs, budget.clients / 2) << limit;
    EXPECT_LT(budget.clients, limit);
    EXPECT_LE(budget.jobs + budget.watches, limit - budget.clients - 48) << limit;
  }
}

}  // namespace
}  // namespace gflow
