// SPDX-License-Identifier: Apache-2.0
#include "runner/expected_end.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace gflow::runner {
namespace {

using attempt::Ending;
using attempt::ResumeJob;
using attempt::SetLimit;
using attempt::StopJob;
using attempt::SuspendJob;
using std::chrono::seconds;

ExpectedEnd::Clock::time_point at(int second) {
  return ExpectedEnd::Clock::time_point(seconds(1000 + second));
}

ExpectedEnd started(std::optional<seconds> limit) {
  ExpectedEnd end;
  end.set_grace(seconds(30));
  end.obey(SetLimit{limit}, at(0));
  end.set_run_time(seconds(0), at(0));
  return end;
}

TEST(ExpectedEnd, ALimitCountsTheTimeItRan) {
  ExpectedEnd end = started(seconds(100));
  EXPECT_EQ(end.limit_at(), at(100));
  end.obey(SuspendJob{}, at(40));
  EXPECT_EQ(end.limit_at(), std::nullopt);
  end.obey(SuspendJob{}, at(45));
  EXPECT_EQ(end.run_time(at(50)), seconds(40));
  end.obey(ResumeJob{}, at(60));
  end.obey(ResumeJob{}, at(70));
  EXPECT_EQ(end.limit_at(), at(120));
  EXPECT_EQ(end.run_time(at(70)), seconds(50));
}

TEST(ExpectedEnd, ToBeToldOfItsLimitLateGivesNoSecondGrace) {
  for (const int told : {15, 39, 90}) {
    ExpectedEnd end = started(seconds(10));
    end.obey(StopJob{SIGTERM, Ending::TimeLimit}, at(told));
    EXPECT_EQ(end.told().value().kill_by, at(40)) << told;
  }
}

TEST(ExpectedEnd, ALimitCanBeMovedOrTakenAway) {
  ExpectedEnd end = started(std::nullopt);
  EXPECT_EQ(end.limit_at(), std::nullopt);
  end.obey(SetLimit{seconds(5)}, at(10));
  EXPECT_EQ(end.limit_at(), at(5));
  end.obey(SetLimit{}, at(10));
  EXPECT_EQ(end.limit_at(), std::nullopt);
}

TEST(ExpectedEnd, AfterARestartItCountsWhatItRanBefore) {
  ExpectedEnd end;
  end.set_run_time(seconds(70), at(0));
  end.obey(SetLimit{seconds(100)}, at(0));
  EXPECT_EQ(end.limit_at(), at(30));
  // One that is suspended: told so in any order.
  for (const bool first : {true, false}) {
    ExpectedEnd suspended;
    if (first) suspended.obey(SuspendJob{}, at(0));
    suspended.set_run_time(seconds(70), at(0));
    suspended.obey(SetLimit{seconds(100)}, at(0));
    if (!first) suspended.obey(SuspendJob{}, at(0));
    EXPECT_EQ(suspended.limit_at(), std::nullopt);
    suspended.obey(ResumeJob{}, at(500));
    EXPECT_EQ(suspended.limit_at(), at(530));
  }
}

TEST(ExpectedEnd, ToldToStopItHasItsGraceOnce) {
  ExpectedEnd end = started(seconds(100));
  end.obey(SuspendJob{}, at(5));
  end.obey(StopJob{SIGTERM, Ending::Preempted}, at(10));
  EXPECT_EQ(end.limit_at(), std::nullopt);
  ASSERT_TRUE(end.told());
  EXPECT_EQ(end.told()->kill_by, at(40));
  // Who cancels it does not want it back; its grace is not prolonged.
  end.obey(StopJob{SIGTERM, Ending::Cancelled}, at(20));
  EXPECT_EQ(end.told()->reason, Ending::Cancelled);
  EXPECT_EQ(end.told()->kill_by, at(40));
  end.obey(StopJob{SIGKILL, Ending::Preempted}, at(25));
  EXPECT_EQ(end.told()->reason, Ending::Cancelled);
  EXPECT_EQ(end.told()->kill_by, at(25));
  // Neither a new limit nor a suspension means anything now.
  end.obey(SetLimit{seconds(200)}, at(26));
  end.obey(SuspendJob{}, at(26));
  EXPECT_EQ(end.limit_at(), std::nullopt);
  EXPECT_EQ(end.run_time(at(30)), seconds(25));
}

}  // namespace
}  // namespace gflow::runner
