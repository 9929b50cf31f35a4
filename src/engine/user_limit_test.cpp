// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/machine_for_tests.h"
#include "core/principal.h"
#include "engine/step.h"

/// How many GPUs the jobs of one user hold.
namespace gflow::engine {
namespace {

class UserLimitTest : public testing::Test {
 protected:
  UserLimitTest() {
    state.restored(JobId(1));
    (void)step(
        state, event::NodesChanged{{machine_with_gpus("n0", 4, "Tesla T4", Memory::gib(16))}}, now);
  }
  static Policy policy() {
    Policy policy;
    policy.order.order = Order::Submission;
    policy.gpu_quota.users = {{"amy", 2}, {"root2", 1}};
    return policy;
  }
  JobId submit(const char* name, int gpus) {
    JobSpec spec;
    spec.user = {7, name};
    spec.request.gpus = gpus;
    const JobId id = state.next_id();
    (void)step(state, event::Submit{{spec}, system_principal()}, now);
    EXPECT_EQ(state.check(), "");
    return id;
  }
  [[nodiscard]] bool is_running(JobId id) const { return is_active(*state.find(id)); }

  State state{policy(), "boot"};
  Now now{.wall = WallTime(std::chrono::hours(1)), .mono = MonoTime(std::chrono::hours(1))};
};

/// An account that was renamed while its jobs wait.
TEST_F(UserLimitTest, IsThatOfTheNameAUserHasNow) {
  const JobId first = submit("amy", 1);
  const JobId waiting = submit("amy", 2);
  EXPECT_FALSE(is_running(waiting));
  const JobId other = submit("bob", 1);
  EXPECT_TRUE(is_running(other));
  EXPECT_TRUE(is_running(waiting)) << "bob has no limit";
  EXPECT_TRUE(is_running(first));
}

TEST_F(UserLimitTest, OfASecondNameHoldsWhatWaitsOfTheFirst) {
  const JobId first = submit("amy", 1);
  const JobId waiting = submit("amy", 2);
  const JobId other = submit("root2", 1);
  EXPECT_TRUE(is_running(first));
  EXPECT_FALSE(is_running(waiting));
  EXPECT_FALSE(is_running(other));
  EXPECT_TRUE(state.is_at_user_limit(waiting));
}

/// The limit is set where both names are in the queue already, and nobody's place is kept for one
/// that may not have it.
TEST_F(UserLimitTest, MayComeLater) {
  Policy free = policy();
  free.gpu_quota = {};
  (void)step(state, event::Configure{free}, now);
  const JobId first = submit("amy", 4);
  const JobId waiting = submit("amy", 2);
  const JobId other = submit("bob", 1);
  (void)step(state, event::Configure{policy()}, now);
  EXPECT_EQ(state.check(), "");
  now.mono += std::chrono::hours(2);
  (void)step(state, event::Tick{}, now);
  Outcome outcome;
  outcome.exit_code = 0;
  (void)step(state, event::AttemptEnded{first, 1, outcome}, now);
  EXPECT_TRUE(is_running(waiting));
  EXPECT_TRUE(is_running(other));
}

}  // namespace
}  // namespace gflow::engine
