// SPDX-License-Identifier: Apache-2.0
#include "lab/churn.h"

#include <gtest/gtest.h>

namespace gflow::lab {
namespace {

Openb one_node(int devices) {
  Openb openb;
  placement::Node node{.name = "n", .milli_cpus = 64'000, .memory = Memory::gib(64)};
  node.devices.resize(static_cast<std::size_t>(devices), {.vendor = "openb", .model = "G2"});
  openb.nodes.push_back(node);
  openb.tasks.push_back({.gpus = 1});
  return openb;
}

struct LossCase {
  int devices;
  double load;
  double allocation;  // percent, by Erlang's loss formula
};

// Whole devices of one node are the servers of a loss system: B(n, a) of a calls are lost.
TEST(Churn, FollowsErlang) {
  const std::vector<LossCase> cases = {
      {1, 1.0, 50.0},   // B(1, 1) = 1/2
      {4, 1.0, 68.93},  // B(4, 4) = 0.31068
      {8, 0.5, 48.48},  // B(8, 4) = 0.03042
  };
  for (const LossCase& c : cases) {
    const ChurnProtocol protocol{.arrivals = 60'000, .load = c.load};
    const ChurnRun run =
        run_churn(one_node(c.devices), 3, *placement::find_policy("pack"), protocol);
    EXPECT_NEAR(run.allocation, c.allocation, 1.0) << c.devices;
    EXPECT_NEAR(run.tasks_accepted, c.allocation / c.load, 1.5) << c.devices;
    EXPECT_DOUBLE_EQ(run.tasks_accepted, run.demand_accepted);
  }
}

TEST(Churn, IsTheSameForTheSameSeed) {
  const auto openb = load_openb(GFLOW_SOURCE_DIR "/tests/fixtures", "default");
  ASSERT_TRUE(openb.has_value());
  const ChurnProtocol protocol{.arrivals = 3'000, .load = 1, .warm_up = 0.05};
  const placement::PolicyEntry& fgd = *placement::find_policy("fgd");
  const ChurnRun run = run_churn(*openb, 42, fgd, protocol);
  EXPECT_EQ(run.allocation, run_churn(*openb, 42, fgd, protocol).allocation);
  EXPECT_NE(run.allocation, run_churn(*openb, 43, fgd, protocol).allocation);
  EXPECT_GT(run.allocation, 0);
  EXPECT_EQ(run.tasks_accepted, 100);  // nobody is refused before the cluster is full
}

}  // namespace
}  // namespace gflow::lab
