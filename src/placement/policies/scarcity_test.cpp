// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "placement/policies/scarcity.h"

#include <gtest/gtest.h>

namespace gflow::placement {
namespace {

Node node_of(std::string name, std::string model, int devices) {
  Node node{.name = std::move(name), .milli_cpus = 16'000};
  node.devices.resize(static_cast<std::size_t>(devices), {.vendor = "nvidia", .model = model});
  return node;
}

/// 2 T4, 2 V100 and 4 A100, in this order of models, 16 CPUs on each node.
Ledger cluster() {
  Ledger ledger;
  ledger.put(node_of("a", "T4", 2));
  ledger.put(node_of("b", "V100", 2));
  ledger.put(node_of("c", "A100", 4));
  return ledger;
}

DemandClass jobs(std::int64_t count, std::vector<std::string> models, std::int64_t milli_cpus = 0) {
  return {.demand = {.gpus = 1, .models = std::move(models), .milli_cpus = milli_cpus},
          .count = count};
}

struct ModelCase {
  std::string name;
  std::vector<DemandClass> classes;
  std::vector<double> expected;  // T4, V100, A100
};

TEST(ModelScarcity, SpreadsWhatIsBoundOverWhatItMayTake) {
  // In each case the jobs are scaled to ask for the 8 devices there are.
  const std::vector<ModelCase> cases = {
      {"nobody asks", {}, {0, 0, 0}},
      {"nobody is bound", {jobs(8, {})}, {0, 0, 0}},
      {"all models named", {jobs(8, {"A100", "T4", "V100"})}, {0, 0, 0}},
      {"one model", {jobs(5, {}), jobs(3, {"T4"})}, {1.5, 0, 0}},
      {"scaled", {jobs(50, {}), jobs(30, {"T4"})}, {1.5, 0, 0}},
      {"one of two, evenly", {jobs(6, {}), jobs(2, {"T4", "V100"})}, {0.5, 0.5, 0}},
      {"beside bound ones", {jobs(5, {}), jobs(2, {"T4"}), jobs(1, {"T4", "V100"})}, {1, 0.5, 0}},
      {"a model that is not there", {jobs(4, {}), jobs(4, {"H100"})}, {0, 0, 0}},
  };
  for (const ModelCase& c : cases) {
    const std::vector<double> scarcity =
        model_scarcity(cluster(), {.classes = c.classes, .typical = c.classes.size()});
    ASSERT_EQ(scarcity.size(), 3U) << c.name;
    for (std::size_t m = 0; m < 3; ++m) {
      EXPECT_NEAR(scarcity[m], c.expected[m], 1e-6) << c.name << ", model " << m;
    }
  }
}

TEST(ModelScarcity, CountsOnlyDevicesThatCanBeUsed) {
  Ledger ledger = cluster();
  Node broken = node_of("a", "T4", 2);
  broken.devices[1].usable = false;
  ledger.put(broken);
  const std::vector<DemandClass> classes = {jobs(6, {}), jobs(1, {"T4"})};
  EXPECT_NEAR(model_scarcity(ledger, {.classes = classes, .typical = 2})[0], 1.0, 1e-6);
}

TEST(CpuScarcity, ComparesWhatIsAskedWithWhatThereIs) {
  // 48 CPUs for 8 devices: 6 for each.
  const auto scarcity = [](std::vector<DemandClass> classes) {
    return cpu_scarcity(cluster(), {.classes = classes, .typical = classes.size()});
  };
  EXPECT_DOUBLE_EQ(scarcity({jobs(10, {}, 3'000)}), 0.5);
  DemandClass without = jobs(10, {}, 3'000);
  without.demand.gpus = 0;
  EXPECT_DOUBLE_EQ(scarcity({jobs(10, {}, 3'000), without}), 1.0);
  EXPECT_DOUBLE_EQ(scarcity({without}), 0);
  EXPECT_DOUBLE_EQ(scarcity({}), 0);
  EXPECT_DOUBLE_EQ(cpu_scarcity(Ledger{}, {.classes = {jobs(1, {}, 1'000)}, .typical = 1}), 0);
}

}  // namespace
}  // namespace gflow::placement
