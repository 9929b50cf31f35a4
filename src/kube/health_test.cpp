// SPDX-License-Identifier: Apache-2.0
#include "kube/health.h"

#include <gtest/gtest.h>

#include "os/clock.h"

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

TEST(Health, ALoopIsStuckThatIsAtOneTurnForLongAndNotOneThatHasNothingToDo) {
  Health health(seconds(60));
  const auto stuck_after = [&health](seconds time) { return health.stuck(os::now().mono + time); };
  EXPECT_EQ(stuck_after(hours(24)), "") << "it has not begun";
  for (int turn = 0; turn < 2; ++turn) {
    health.wait([&] { EXPECT_EQ(stuck_after(hours(24)), ""); });
    EXPECT_EQ(stuck_after(seconds(30)), "");
    EXPECT_EQ(stuck_after(hours(1)), "the loop has been at one turn for 3600 s");
  }
}

}  // namespace
}  // namespace gflow::kube
