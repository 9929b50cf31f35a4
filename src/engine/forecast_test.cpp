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
  int after = 0;  ///< depends on this job; 0: on none
  int begin = 0;  ///< minutes from now; 0: none
  int group = 0;  ///< of so many at once; 0: none
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
    if (asks.after > 0) spec.dependencies.jobs = {JobId(static_cast<std::uint64_t>(asks.after))};
    if (asks.begin > 0) spec.begin = now.wall + minutes(asks.begin);
    if (asks.group > 0) {
      spec.group = fmt::format("group{}", asks.group);
      spec.max_concurrent = asks.group;
    }
    const JobId id = state.next_id();
    (void)step(state, event::Submit{{spec}, system_principal()}, now);
    launch();
    return id;
  }
  /// Whoever starts is launched at once.
  void launch() {
    while (state.count(Status::Starting) > 0) {
      const Job& first = *state.list({.statuses = {Status::Starting}, .most = 1}).front();
      (void)step(state, event::AttemptStarted{first.id, first.attempts, 1}, now);
    }
  }
  void pass(std::chrono::milliseconds time) {
    now.mono += time;
    now.wall += time;
  }
  void end(JobId id) {
    Outcome outcome;
    outcome.exit_code = 0;
    outcome.run_time = run_time_of(*state.find(id), now.mono);
    (void)step(state, event::AttemptEnded{id, 1, outcome}, now);
    launch();
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
  (void)submit({.gpus = 4, .limit = 30});
  (void)submit({.gpus = 2, .limit = 40});  // over in time: in 20
  (void)submit({.gpus = 1, .limit = 90});  // what 3 leaves, when the first of two ends in 60
  EXPECT_EQ(forecast(), "3 in 60, 4 in 150, 5 in 20, 6 in 60");
}

TEST_F(ForecastTest, KeepsThePlaceOfTheNextHead) {
  (void)submit({.gpus = 4, .limit = 60});
  (void)submit({.gpus = 3, .limit = 30});
  (void)submit({.gpus = 4, .limit = 30});
  (void)submit({.gpus = 1, .limit = 90});  // what 2 leaves is needed by 3 in 90
  EXPECT_EQ(forecast(), "2 in 60, 3 in 90, 4 in 120");
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

TEST_F(ForecastTest, KnowsTheEndOfOneThatWasToldToStop) {
  const JobId first = submit({.gpus = 4});
  (void)submit({.gpus = 4});
  ASSERT_EQ(forecast(), "2");
  (void)step(state, event::Cancel{{first}, system_principal()}, now);
  ASSERT_TRUE(is_active(*state.find(first)));
  EXPECT_EQ(forecast(), "2 in 0") << "it has no grace";
  const auto why = state.blockers(JobId(2), now);
  ASSERT_FALSE(why.empty());
  EXPECT_EQ(std::get<blocker::Gpus>(why.front()).holders.front().ends, now.wall);
}

/// A job that waits for a time or for another has its turn from then on, as if it came then.
TEST_F(ForecastTest, CountsWhoComesLater) {
  (void)submit({.gpus = 4, .limit = 60});
  (void)submit({.gpus = 4, .limit = 30});                // 2 in 60
  (void)submit({.gpus = 2, .limit = 20, .after = 2});    // 3 in 90
  (void)submit({.gpus = 2, .limit = 50, .begin = 80});   // 4 in 90: 2 has it all until then
  (void)submit({.gpus = 1, .limit = 10, .after = 4});    // 5 in 140
  (void)submit({.gpus = 1, .limit = 10, .begin = 200});  // 6 in 200, when it was asked for
  EXPECT_EQ(forecast(), "2 in 60, 3 in 90, 4 in 90, 5 in 140, 6 in 200");
  const auto told = state.forecast(100, now);
  EXPECT_EQ(told[2].start->known, StartKnown::ByRunTimes);
  EXPECT_EQ(told[4].start->known, StartKnown::ByBegin);
}

TEST_F(ForecastTest, CountsTheRestOfAGroup) {
  for (int i = 0; i < 5; ++i) (void)submit({.gpus = 1, .limit = 20, .group = 2});
  EXPECT_EQ(forecast(), "3 in 20, 4 in 20, 5 in 40");
}

/// Nobody knows when there is room, but it cannot be sooner.
TEST_F(ForecastTest, TellsWhatItWaitsForAtLeast) {
  (void)submit({.gpus = 4});
  (void)submit({.gpus = 1, .limit = 10, .begin = 200});
  (void)submit({.gpus = 1, .limit = 10, .after = 1});
  const auto told = state.forecast(100, now);
  ASSERT_EQ(told.size(), 1U) << "of who waits for a job without an end nothing is known";
  EXPECT_EQ(told[0].start, (ExpectedStart{now.wall + minutes(200), StartKnown::NotBefore}));
}

/// What it may cost is bounded; where that is reached it says so.
TEST_F(LearnedForecastTest, LooksNoFurtherThanItMay) {
  for (int i = 0; i < 2000; ++i) {
    (void)submit({.gpus = 1 + i % 4, .limit = 1 + i, .priority = 10 + i % 3});
  }
  const auto told = state.forecast(1000, now);
  ASSERT_EQ(told.size(), 1000U);
  std::size_t later = 0;
  std::optional<WallTime> from;
  for (const Expected& one : told) {
    ASSERT_TRUE(one.start) << one.job.value;
    if (one.start->known != StartKnown::NotBefore) continue;
    ++later;
    if (!from) from = one.start->at;
    EXPECT_EQ(one.start->at, *from) << "the same for all: so far it looked";
  }
  EXPECT_GT(later, 0U);
  EXPECT_LT(later, told.size());
  for (const Expected& one : told) EXPECT_LE(one.start->at, *from);
}

/// Where jobs run for as long as they may and nobody else comes, each starts when it was told to.
class ForecastHolds : public ForecastTest, public testing::WithParamInterface<unsigned> {
 protected:
  explicit ForecastHolds(const Policy& policy = in_order())
      : ForecastTest(policy), draw_(GetParam()) {}
  int below(int most) { return static_cast<int>(draw_() % static_cast<unsigned>(most)); }
  Asks any(int users) {
    return {.gpus = 1 + below(4),
            .limit = 1 + below(90),
            .seconds = below(60),
            .priority = 10 + below(3),
            .uid = 1000 + static_cast<std::uint32_t>(below(users))};
  }
  /// One in three is in a group with a limit, one in four depends on others, one in five begins
  /// later.
  Asks any_of_all_sorts(int users) {
    Asks asks = any(users);
    const int last = static_cast<int>(state.next_id().value) - 1;
    if (below(3) == 0) asks.group = 1 + below(3);
    if (below(4) == 0 && last > 0) asks.after = 1 + below(last);
    if (below(5) == 0) asks.begin = 1 + below(600);
    return asks;
  }
  /// What happens next, happens: a job ends, or the time comes that one waits for.
  void go_on() {
    WallTime next = WallTime::max();
    std::vector<std::pair<WallTime, JobId>> ends;
    for (const Job* job : state.list({.statuses = kActive})) {
      ends.emplace_back(attempt_of(*job)->started + *job->spec.time_limit, job->id);
      next = std::min(next, ends.back().first);
    }
    for (const Job* job : state.list({.statuses = kPending})) {
      if (job->spec.begin && *job->spec.begin > now.wall) next = std::min(next, *job->spec.begin);
    }
    pass(next - now.wall);
    (void)step(state, event::Tick{}, now);
    launch();
    if (ends.empty()) return;
    const auto first = std::ranges::min(ends);
    if (first.first == now.wall) end(first.second);
  }
  void expect_that_it_holds() { EXPECT_EQ(count_wrong(), 0U); }
  /// How many did not start when they were told to.
  std::size_t count_wrong() {
    std::map<JobId, WallTime> told;
    for (const Expected& one : state.forecast(1000, now)) {
      EXPECT_TRUE(one.start) << one.job.value;
      if (one.start) told.emplace(one.job, one.start->at);
    }
    EXPECT_EQ(told.size(), state.count(Status::Queued));
    while (state.count(kNotEnded) > 0) go_on();
    return static_cast<std::size_t>(std::ranges::count_if(told, [this](const auto& one) {
      return attempt_of(*state.find(one.first))->started != one.second;
    }));
  }

 private:
  std::mt19937 draw_;
};

TEST_P(ForecastHolds, WhereAllGoesAsExpected) {
  for (int i = 0; i < 40; ++i) (void)submit(any(1));
  expect_that_it_holds();
}

TEST_P(ForecastHolds, WithGroupsDependenciesAndBeginTimes) {
  for (int i = 0; i < 40; ++i) (void)submit(any_of_all_sorts(1));
  expect_that_it_holds();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ForecastHolds, testing::Range(1U, 21U));

/// Also where who goes first changes with what is learned of those that end, and with what users
/// had until then.
class LearnedForecastHolds : public ForecastHolds {
 protected:
  LearnedForecastHolds() : ForecastHolds(Policy{}) {}
};

TEST_P(LearnedForecastHolds, AsItIsLearnedHowLongJobsRun) {
  for (int i = 0; i < 40; ++i) (void)submit(any(1));
  expect_that_it_holds();
}

/// Of several users, one start in a hundred or so is another than was told, and moves others.
TEST_P(LearnedForecastHolds, WithSeveralUsers) {
  for (int i = 0; i < 40; ++i) (void)submit(any(3));
  EXPECT_LE(count_wrong(), 10U);
}

TEST_P(LearnedForecastHolds, WithGroupsDependenciesAndBeginTimes) {
  for (int i = 0; i < 40; ++i) (void)submit(any_of_all_sorts(3));
  EXPECT_LE(count_wrong(), 10U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LearnedForecastHolds, testing::Range(1U, 21U));

}  // namespace
}  // namespace gflow::engine
