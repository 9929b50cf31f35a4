// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "core/gpu_request.h"
#include "core/machine_for_tests.h"
#include "core/principal.h"
#include "engine/step.h"

/// What an executor says of stops that are not its to decide: StopBegun, StopRefused.
namespace gflow::engine {
namespace {

/// Two jobs that may be preempted have a GPU each of a node of two.
class StopReports : public testing::Test {
 protected:
  StopReports() {
    state.restored(JobId(1));
    (void)tell(event::NodesChanged{{machine_with_gpus("n0", 2, "Tesla T4", Memory::gib(16))}});
    for (const JobId id : {submit("1", 10), submit("1", 10)}) {
      (void)tell(event::AttemptStarted{id, 1, 42});
    }
  }

  JobId submit(std::string_view gpus, int priority) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.priority = priority;
    spec.preemption = Preemption::Requeue;
    apply(*parse_gpu_request(gpus), spec.request);
    const JobId id = state.next_id();
    stopped = tell(event::Submit{{spec}, system_principal()});
    return id;
  }
  /// Who is stopped for it.
  std::set<JobId> tell(const Event& event) {
    now.mono += std::chrono::seconds(1);
    std::set<JobId> told;
    for (const Effect& effect : step(state, event, now)) {
      if (const auto* stop = std::get_if<effect::StopAttempt>(&effect)) told.insert(stop->job);
    }
    return told;
  }
  std::set<JobId> allow(JobId id) {
    event::Update update{{id}, system_principal(), {}};
    update.changes.set(&JobSpec::preemption, Preemption::Requeue);
    return tell(update);
  }

  State state{Policy{}, "boot"};
  Now now{.wall = WallTime(std::chrono::hours(1)), .mono = MonoTime(std::chrono::hours(1))};
  std::set<JobId> stopped;
  const JobId first{1};
  const JobId last{2};
};

TEST_F(StopReports, AnotherMakesRoomForOneThatMayNotBeStopped) {
  submit("1", 200);
  ASSERT_EQ(stopped, std::set{last});
  EXPECT_EQ(tell(event::StopRefused{last, 1}), std::set{first});
  EXPECT_EQ(state.check(), "");
}

TEST_F(StopReports, WhereSomeWentForNothingNoMoreAreStoppedAtOnce) {
  submit("2", 200);
  ASSERT_EQ(stopped, (std::set{first, last}));
  (void)tell(event::AttemptEnded{last, 1, Outcome{}});
  EXPECT_EQ(tell(event::StopRefused{first, 1}), std::set<JobId>{});
  EXPECT_EQ(allow(first), std::set<JobId>{});
  now.mono += std::chrono::minutes(10);
  EXPECT_EQ(tell(event::Tick{}), std::set{first});
}

TEST_F(StopReports, WhatSomebodyElseStopsIsRoomToCome) {
  (void)tell(event::StopBegun{first, 1});
  submit("1", 200);
  EXPECT_EQ(stopped, std::set<JobId>{});
  (void)tell(event::AttemptEnded{first, 1, Outcome{}});
  EXPECT_EQ(status_of(*state.find(JobId(3))), Status::Starting);
}

TEST_F(StopReports, NobodyMakesRoomForOneThatSparesThem) {
  state.spare(state.next_id(), true);
  submit("1", 200);
  EXPECT_EQ(stopped, std::set<JobId>{});
}

TEST_F(StopReports, AStartThatFailsIsNoReasonToStopOthersAgain) {
  const JobId vip = submit("1", 200);
  (void)tell(event::AttemptEnded{last, 1, Outcome{}});
  ASSERT_EQ(status_of(*state.find(vip)), Status::Starting);
  (void)submit("1", 250);  // takes the room when the first fails
  Outcome failed{.reason = EndReason::NotStarted, .message = "refused"};
  failed.failure.kind = FailureKind::Passing;
  EXPECT_EQ(tell(event::AttemptEnded{vip, 1, failed}), std::set<JobId>{});
  now.mono += std::chrono::minutes(2);  // its pause is over
  EXPECT_EQ(tell(event::Tick{}), std::set<JobId>{});
}

}  // namespace
}  // namespace gflow::engine
