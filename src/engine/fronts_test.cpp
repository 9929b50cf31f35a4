// SPDX-License-Identifier: Apache-2.0
// What a pass looks at: what may have room, however much waits.
#include "engine/fronts.h"

#include <gtest/gtest.h>

#include "core/machine_for_tests.h"
#include "engine/step.h"

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;

/// A machine of two GPUs, both of them held, and many that wait, no two of which ask for the same.
class Waiting : public testing::Test {
 protected:
  static constexpr int kJobs = 200;

  Waiting() {
    state.restored(JobId(1));
    Machine machine = machine_with_gpus("n0", 2, "A100", Memory::gib(40));
    machine.memory = Memory::gib(64);
    tell(event::NodesChanged{{machine}});
    submit(1, 1);
    submit(1, 1);
    for (int i = 0; i < kJobs; ++i) submit(2, 10 + i);
  }

  std::vector<Effect> tell(const Event& event) {
    now.mono += 1s;
    now.wall += 1s;
    return step(state, event, now);
  }
  void submit(int gpus, int mebibytes) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.request.gpus = gpus;
    spec.request.memory = Memory::mib(mebibytes);
    (void)tell(event::Submit{{spec}, system_principal()});
  }
  /// How often room was looked for with this.
  template <typename Do>
  std::uint64_t looks(Do what) {
    const std::uint64_t before = state.looks();
    what();
    return state.looks() - before;
  }

  State state{Policy{}, "boot"};
  Now now{WallTime(1000min), MonoTime(0ms)};
};

TEST_F(Waiting, ASubmissionLooksForRoomForItselfOnly) {
  EXPECT_EQ(looks([&] { submit(1, 5); }), 1U);
  EXPECT_EQ(looks([&] { tell(event::Tick{}); }), 0U);
  EXPECT_EQ(looks([&] { tell(event::Cancel{{JobId(7)}, system_principal()}); }), 0U);
}

TEST_F(Waiting, WhatIsGivenBackIsLookedForByThoseThatFitThere) {
  submit(1, 5);
  EXPECT_EQ(looks([&] { tell(event::AttemptEnded{JobId(1), 1, Outcome{}}); }), 1U);
  EXPECT_EQ(state.count(Status::Starting), 2U);
}

TEST_F(Waiting, AStartThatIsReportedGivesNothingBack) {
  EXPECT_EQ(looks([&] { tell(event::AttemptStarted{JobId(1), 1, 100}); }), 0U);
}

TEST_F(Waiting, WhoGoesFirstIsKnownThoughNothingWasLookedAt) {
  tell(event::Tick{});
  const std::vector<Blocker> why = state.blockers(JobId(9), now);
  ASSERT_FALSE(why.empty());
  const auto* order = std::get_if<blocker::Priority>(&why.back());
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(order->behind, JobId(3));
}

}  // namespace
}  // namespace gflow::engine
