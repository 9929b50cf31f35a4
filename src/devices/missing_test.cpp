// SPDX-License-Identifier: Apache-2.0
#include "devices/missing.h"

#include <gtest/gtest.h>

namespace gflow::devices {
namespace {

TEST(Missing, OneClauseForEachReason) {
  EXPECT_EQ(missing_text({}), "");
  EXPECT_EQ(missing_text({{"power_limit", "Not Supported"}}), "no power limit (Not Supported)");
  EXPECT_EQ(missing_text({{"utilization", "Not Supported"},
                          {"processes", "Insufficient Permissions"},
                          {"power", "Not Supported"}}),
            "no utilization, power (Not Supported); no processes (Insufficient Permissions)");
}

}  // namespace
}  // namespace gflow::devices
