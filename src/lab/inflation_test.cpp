// SPDX-License-Identifier: Apache-2.0
// The gate: our policies come to the very results their authors published.
#include "lab/inflation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gflow::lab {
namespace {

const std::string kFixtures = GFLOW_SOURCE_DIR "/tests/fixtures";
constexpr int kSeed = 42;

struct GateCase {
  const char* trace;
  const char* policy;
};

class Gate : public testing::TestWithParam<GateCase> {
 protected:
  /// Ours and the published curve.
  static std::pair<AllocationCurve, AllocationCurve> curves() {
    const auto openb = load_openb(kFixtures, GetParam().trace);
    const auto order = load_arrival_order(kFixtures, GetParam().trace, kSeed);
    const auto published = load_published(kFixtures);
    if (!openb || !order || !published) return {};
    for (const PublishedRun& run : *published) {
      if (run.trace != GetParam().trace || run.policy != GetParam().policy) continue;
      const placement::PolicyEntry* policy = placement::find_policy(GetParam().policy);
      return {run_inflation(*openb, *order, *policy).curve, run.curve};
    }
    return {};
  }
};

TEST_P(Gate, AgreesWithThePublishedCurve) {
  const auto [ours, published] = curves();
  ASSERT_GT(published.back(), 50);
  for (std::size_t i = 0; i < published.size(); ++i) {
    EXPECT_NEAR(ours[i], published[i], 0.0101) << "at " << i << " % arrived";
  }
}

INSTANTIATE_TEST_SUITE_P(Openb,
                         Gate,
                         testing::Values(GateCase{"default", "dot-prod"},
                                         GateCase{"default", "gpu-clustering"},
                                         GateCase{"default", "gpu-packing"},
                                         GateCase{"default", "best-fit"},
                                         GateCase{"default", "fgd"},
                                         GateCase{"multigpu50", "gpu-clustering"},
                                         GateCase{"multigpu50", "fgd"},
                                         GateCase{"gpuspec33", "gpu-packing"},
                                         GateCase{"gpuspec33", "fgd"}),
                         [](const auto& param) {
                           std::string name =
                               std::string(param.param.trace) + "_" + param.param.policy;
                           std::erase(name, '-');
                           return name;
                         });

class RandomGate : public Gate {};

// Theirs depends on the order in which threads end: only the height can be compared.
TEST_P(RandomGate, IsAsHighAsThePublishedCurve) {
  const auto [ours, published] = curves();
  ASSERT_GT(published.back(), 50);
  EXPECT_NEAR(ours[60], published[60], 0.5);
  EXPECT_NEAR(ours[100], published[100], 1.5);
  EXPECT_NEAR(ours[130], published[130], 1.5);
}

INSTANTIATE_TEST_SUITE_P(Openb, RandomGate, testing::Values(GateCase{"default", "random"}));

}  // namespace
}  // namespace gflow::lab
