// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/machine_for_tests.h"
#include "core/principal.h"
#include "engine/step.h"

/// The queue in its order, and when its jobs should start.
namespace gflow::engine {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

struct Asks {
  int gpus = 1;
  int limit = 0;    ///< minutes; 0: none
  int seconds = 0;  ///< of the limit, too
  int priority = kDefaultPriority;
  std::uint32_t uid = 1000;
};

class ForecastTest : public testing::Test {
 protected:
  explicit ForecastTest(const Policy& policy = in_order()) : state(policy, "boot") {
    state.restored(JobId(1));
    const Machine machine = machine_with_gpus("n0", 4, "Tesla T4", Memory::gib(16));
    (void)step(state, event::NodesChanged{{machine}}, now);
  }
  static Policy in_order() {
    Policy policy;
    policy.order.order = Order::Submission;
    return policy;
  }
  JobId submit(const Asks& asks) {
    JobSpec spec;
    spec.user = {asks.uid, fmt::format("user{}", asks.uid)};
    spec.request.gpus = asks.gpus;
    spec.priority = asks.priority;
    spec.grace = {};
    if (asks.limit > 0) spec.time_limit = minutes(asks.limit) + std::chrono::seconds(asks.seconds);
    const JobId id = state.next_id();
    (void)step(state, event::Submit{{spec}, system_principal()}, now);
    return id;
  }
  void pass(std::chrono::milliseconds time) {
    now.mono += time;
    now.wall += time;
  }
  void end(JobId id) {
    Outcome outcome;
    outcome.exit_code = 0;
    (void)step(state, event::AttemptEnded{id, 1, outcome}, now);
  }
  /// "2 in 60, 3": who waits, in order, and in how many minutes it should start.
  [[nodiscard]] std::string forecast(std::size_t most = 100) const {
    std::string text;
    for (const Expected& one : state.forecast(most, now)) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", one.job.value);
      if (!one.start) continue;
      text += fmt::format(" in {}",
                          std::chrono::duration_cast<minutes>(one.start->at - now.wall).count());
    }
    return text;
  }

  Now now{.wall = WallTime(hours(1)), .mono = MonoTime(hours(1))};
  State state;
};

TEST_F(ForecastTest, OfAnEmptyQueueIsEmpty) {
  EXPECT_EQ(forecast(), "");
  (void)submit({.gpus = 4});
  EXPECT_EQ(forecast(), "") << "it runs";
}

TEST_F(ForecastTest, TellsEachItsTurn) {
  (void)submit({.gpus = 4, .limit = 60});
  (void)submit({.gpus = 4, .limit = 30});
  (void)submit({.gpus = 2, .limit = 20});
  (void)submit({.gpus = 2, .limit = 50});
  (void)submit({.gpus = 3, .limit = 10});
  EXPECT_EQ(forecast(), "2 in 60, 3 in 90, 4 in 90, 5 in 140");
  EXPECT_EQ(forecast(2), "2 in 60, 3 in 90");
  pass(minutes(20));
  EXPECT_EQ(forecast(1), "2 in 40");
}

TEST_F(ForecastTest, GoesByPriorityFirst) {
  (void)submit({.gpus = 4, .limit = 60});
  (void)submit({.gpus = 4, .limit = 30});
  (void)submit({.gpus = 4, .limit = 10, .priority = kDefaultPriority + 10});
  EXPECT_EQ(forecast(), "3 in 60, 2 in 70");
}

/// What nobody knows is not guessed, and what hangs on it neither.
TEST_F(ForecastTest, KnowsNothingBehindAJobWithoutAnEnd) {
  (void)submit({.gpus = 2, .limit = 60});
  (void)submit({.gpus = 2, .limit = 20});
  (void)submit({.gpus = 4});
  (void)submit({.gpus = 1, .limit = 90});
  (void)submit({.gpus = 1, .limit = 40});
  EXPECT_EQ(forecast(), "3 in 60, 4, 5 in 20");
}

/// A small job goes before a large one where it is over in time, and else takes what that leaves.
TEST_F(ForecastTest, LetsJobsPassThatDelayNobody) {
  (void)submit({.gpus = 2, .limit = 60});
  (void)submit({.gpus = 2, .limit = 20});
  (void)submit({.gpus = 3, .limit = 30});  // 3 in 60
  (void)submit({.gpus = 4, .limit = 30});  // 4 in 90
  (void)submit({.gpus = 2, .limit = 40});  // over in time: in 20
  (void)submit({.gpus = 1, .limit = 90});  // what 3 leaves is needed by 4 in 90
  EXPECT_EQ(forecast(), "3 in 60, 4 in 90, 5 in 20, 6 in 120");
}

TEST_F(ForecastTest, HasTheLimitsOfUsers) {
  Policy policy = in_order();
  policy.gpu_quota.per_user = 2;
  (void)step(state, event::Configure{policy}, now);
  (void)submit({.gpus = 2, .limit = 60});
  (void)submit({.gpus = 2, .limit = 30});
  (void)submit({.gpus = 1, .limit = 30});
  (void)submit({.gpus = 2, .limit = 45, .uid = 1001});
  (void)submit({.gpus = 2, .limit = 45, .uid = 1001});
  EXPECT_EQ(forecast(), "2 in 60, 3 in 90, 5 in 45");
}

class LearnedForecastTest : public ForecastTest {
 protected:
  LearnedForecastTest() : ForecastTest(Policy{}) {}
};

/// Before it waited for long a job lets others of its priority pass.
TEST_F(LearnedForecastTest, KeepsAPlaceOnlyWhereTheEngineDoes) {
  (void)submit({.gpus = 2, .limit = 60});
  (void)submit({.gpus = 2, .limit = 20});
  (void)submit({.gpus = 4, .limit = 600});
  (void)submit({.gpus = 2, .limit = 50});
  EXPECT_NE(forecast().find("4 in 20"), std::string::npos) << forecast();
  EXPECT_NE(forecast().find("3 in 70"), std::string::npos) << forecast();
}

/// Without a limit the end of a job is known once some like it have ended, and not before.
TEST_F(LearnedForecastTest, LearnsHowLongJobsRun) {
  for (int i = 0; i < 3; ++i) {
    const JobId runs = submit({.gpus = 4});
    const JobId waits = submit({.gpus = 4});
    EXPECT_EQ(forecast(), fmt::format("{}", waits.value));
    (void)step(state, event::Cancel{{waits}, system_principal()}, now);
    pass(minutes(20));
    end(runs);
  }
  pass(minutes(10));
  (void)step(state, event::Tick{}, now);
  (void)submit({.gpus = 4});
  const JobId waits = submit({.gpus = 4});
  EXPECT_TRUE(forecast().starts_with(fmt::format("{} in ", waits.value))) << forecast();
}

/// To ask is not to decide: nothing the scheduler counts or keeps is changed by it.
TEST_F(ForecastTest, CostsNothingToDecide) {
  for (int i = 0; i < 500; ++i) (void)submit({.gpus = 1 + i % 4, .limit = 1 + i});
  const std::uint64_t looks = state.looks();
  const std::uint64_t passes = state.passes();
  const std::uint64_t revision = state.revision();
  EXPECT_EQ(state.forecast(1000, now).size(), state.count(Status::Queued));
  EXPECT_EQ(state.looks(), looks);
  EXPECT_EQ(state.passes(), passes);
  EXPECT_EQ(state.revision(), revision);
  EXPECT_EQ(state.check(), "");
}

TEST_F(ForecastTest, IsNothingWhereNothingIsKnown) {
  (void)submit({.gpus = 4});
  const JobId first = submit({.gpus = 4});
  const JobId behind = submit({.gpus = 4});
  EXPECT_EQ(forecast(), "2, 3");
  const auto ahead = state.ahead_of(behind, now);
  ASSERT_TRUE(ahead);
  EXPECT_EQ(ahead->behind, first);
  EXPECT_FALSE(ahead->reserved_from);
}

/// What runs ends as its like did, though it may run for longer: as what waits is expected to.
TEST_F(LearnedForecastTest, GoesByWhatIsKnownOfThoseThatRun) {
  for (int i = 0; i < 20; ++i) {
    const JobId id = submit({.gpus = 4, .limit = 480});
    pass(minutes(10));
    end(id);
  }
  pass(hours(1));
  (void)step(state, event::Tick{}, now);
  (void)submit({.gpus = 4, .limit = 480});
  (void)submit({.gpus = 4, .limit = 480});
  (void)submit({.gpus = 4, .limit = 480});
  const auto told = state.forecast(10, now);
  ASSERT_EQ(told.size(), 2U);
  ASSERT_TRUE(told[0].start && told[1].start);
  EXPECT_LT(told[0].start->at - now.wall, hours(1));
  EXPECT_LT(told[1].start->at - told[0].start->at, hours(1));
}

/// What is overdue is expected now, so that the answer tells when it was made.
TEST_F(ForecastTest, IsMadeOnceASecondWhileNothingChanges) {
  (void)submit({.gpus = 4, .limit = 1});
  (void)submit({.gpus = 4});
  pass(minutes(2));
  const auto first = state.forecast(100, now);
  ASSERT_EQ(first[0].start->at, now.wall);
  pass(std::chrono::milliseconds(999));
  EXPECT_EQ(state.forecast(100, now), first);
  EXPECT_EQ(state.forecast(1, now)[0].start->at, now.wall) << "another question";
  const auto second = state.forecast(100, now);
  EXPECT_EQ(second[0].start->at, now.wall);
  pass(std::chrono::milliseconds(1));
  (void)submit({.gpus = 4});
  EXPECT_EQ(state.forecast(100, now).size(), 2U) << "something changed";
}

/// Where jobs run for as long as they may and nobody else comes, each starts when it was told to.
class ForecastHolds : public ForecastTest, public testing::WithParamInterface<unsigned> {};

TEST_P(ForecastHolds, WhereAllGoesAsExpected) {
  std::mt19937 draw(GetParam());
  const auto below = [&draw](unsigned most) { return static_cast<int>(draw() % most); };
  for (int i = 0; i < 40; ++i) {
    (void)submit({.gpus = 1 + below(4),
                  .limit = 1 + below(90),
                  .seconds = below(60),
                  .priority = 10 + below(3)});
  }
  std::map<JobId, WallTime> told;
  for (const Expected& one : state.forecast(1000, now)) {
    ASSERT_TRUE(one.start) << one.job.value;
    told.emplace(one.job, one.start->at);
  }
  while (state.count(kNotEnded) > 0) {
    std::vector<std::pair<WallTime, JobId>> ends;
    for (const Job* job : state.list({.statuses = kActive})) {
      ends.emplace_back(attempt_of(*job)->started + *job->spec.time_limit, job->id);
    }
    ASSERT_FALSE(ends.empty());
    const auto first = std::ranges::min(ends);
    pass(first.first - now.wall);
    end(first.second);
    const Job& over = *state.find(first.second);
    if (told.contains(over.id)) {
      EXPECT_EQ(attempt_of(over)->started, told.at(over.id)) << "job " << over.id.value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ForecastHolds, testing::Range(1U, 21U));

}  // namespace
}  // namespace gflow::engine
