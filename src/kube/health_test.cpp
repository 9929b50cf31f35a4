// SPDX-License-Identifier: Apache-2.0
#include "kube/health.h"

#include <gtest/gtest.h>

namespace gflow::kube {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(Health, IsReadyOnceThatIsSaidAndSaysWhatItWaitsForBefore) {
  Health health;
  EXPECT_EQ(health.unready(), "it starts");
  health.ready();
  EXPECT_EQ(health.unready(), "");
  health.not_ready("it ends");
  EXPECT_EQ(health.unready(), "it ends");
}

TEST(Health, ALoopIsStuckThatIsAtOneTurnForAMinuteAndNotOneThatHasNothingToDo) {
  Health health;
  const MonoTime begin{hours(1)};
  EXPECT_EQ(health.stuck(begin), "") << "it has not begun";
  health.turn_begins(begin);
  EXPECT_EQ(health.stuck(begin + seconds(59)), "");
  EXPECT_EQ(health.stuck(begin + seconds(61)), "the loop has been at one turn for 61 s");
  health.turn_ends();
  EXPECT_EQ(health.stuck(begin + hours(24)), "");
  health.turn_begins(begin + hours(24));
  EXPECT_EQ(health.stuck(begin + hours(24)), "");
}

}  // namespace
}  // namespace gflow::kube
