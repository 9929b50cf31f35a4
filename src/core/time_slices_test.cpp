// SPDX-License-Identifier: Apache-2.0
#include "core/time_slices.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gflow {
namespace {

TEST(TimeSliceShares, GoByPriorityAndSumUpToTheWhole) {
  struct Case {
    std::vector<int> priorities;
    std::vector<int> parts;
  };
  const std::vector<Case> cases = {{{}, {}},
                                   {{10}, {10'000}},
                                   {{10, 10}, {5'000, 5'000}},
                                   {{10, 10, 10}, {3'334, 3'333, 3'333}},
                                   {{0, 255}, {39, 9'961}},
                                   {{9, 19}, {3'333, 6'667}}};
  for (const Case& row : cases) {
    std::vector<TimeSliceUser> takers;
    for (const int priority : row.priorities) {
      takers.push_back({JobId(takers.size() + 1), priority});
    }
    std::vector<int> parts;
    for (const TimeSliceShare& share : time_slice_shares(takers)) parts.push_back(share.time.parts);
    EXPECT_EQ(parts, row.parts) << row.priorities.size();
  }
}

}  // namespace
}  // namespace gflow
