// SPDX-License-Identifier: Apache-2.0
#include "engine/history.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

const Signature kAlice{.limit_class = 0, .parts = 10'000, .uid = 1, .name = ""};

TEST(ServiceStep, DoublesFromHalfAMinute) {
  const struct {
    seconds served;
    int step;
  } rows[] = {{-1s, 0},
              {0s, 0},
              {29s, 0},
              {30s, 1},
              {59s, 1},
              {60s, 2},
              {119s, 2},
              {120s, 3},
              {3600s, 7},
              {std::chrono::years(100), kServiceSteps - 1}};
  for (const auto& row : rows) EXPECT_EQ(service_step(row.served), row.step) << row.served.count();
  for (int step = 1; step < kServiceSteps; ++step) {
    EXPECT_EQ(service_step(step_begin(step)), step);
    EXPECT_EQ(service_step(step_begin(step) - 1s), step - 1);
    EXPECT_EQ(until_next_step(step_begin(step) - 1s), 1s);
  }
  EXPECT_EQ(until_next_step(0s), 30s);
  EXPECT_EQ(until_next_step(std::chrono::years(100)), std::nullopt);
}

TEST(LimitClass, IsTheSmallestThatHoldsTheLimit) {
  const struct {
    std::optional<seconds> limit;
    int wanted;
  } rows[] = {{std::nullopt, 0},
              {1s, 1},
              {1h, 1},
              {1h + 1s, 2},
              {4h, 2},
              {24h, 4},
              {72h, 5},
              {73h, 6},
              {std::chrono::days(400), 10},
              {std::chrono::years(9), 10}};
  for (const auto& row : rows) EXPECT_EQ(limit_class(row.limit), row.wanted);
}

TEST(History, GuessesWhereNothingIsKnown) {
  const History history;
  EXPECT_EQ(history.run_time(kAlice), 4h);
  Signature hour = kAlice;
  hour.limit_class = limit_class(1h);
  EXPECT_EQ(history.run_time(hour), 30min);
  EXPECT_EQ(history.levels(), 0U);
}

TEST(History, LearnsTheMeanOfJobsAlike) {
  History history;
  for (int i = 0; i < 400; ++i) history.record(kAlice, 0s, 1000s, Seen::Ended);
  EXPECT_NEAR(static_cast<double>(history.run_time(kAlice).count()), 1000, 20);

  // Of a stranger less is known than of her, of a bigger job less still: the guess weighs more.
  Signature stranger = kAlice;
  stranger.uid = 2;
  Signature bigger = stranger;
  bigger.parts = 80'000;
  EXPECT_LE(history.run_time(kAlice), history.run_time(stranger));
  EXPECT_LE(history.run_time(stranger), history.run_time(bigger));
  EXPECT_LT(history.run_time(bigger), 4h);
  Signature limited = kAlice;
  limited.limit_class = 3;
  EXPECT_EQ(history.run_time(limited), 6h) << "jobs with a limit are another matter";
}

TEST(History, TellsJobsOfOneOwnerApartByName) {
  History history;
  Signature train = kAlice;
  train.name = "train";
  Signature check = kAlice;
  check.name = "check";
  for (int i = 0; i < 50; ++i) {
    history.record(train, 0s, 24h, Seen::Ended);
    history.record(check, 0s, 60s, Seen::Ended);
  }
  EXPECT_GT(history.run_time(train), 16h);
  EXPECT_LT(history.run_time(check), 4h);
  EXPECT_LT(history.time_to_end(check, 0s), history.time_to_end(train, 0s));
}

TEST(History, ExpectsAnEndWhereJobsAlikeEnded) {
  History history;
  for (int i = 0; i < 60; ++i) history.record(kAlice, 0s, 90s, Seen::Ended);
  const seconds fresh = history.time_to_end(kAlice, 0s);
  EXPECT_LT(fresh, 200s) << "most end within two minutes";
  EXPECT_GT(history.time_to_end(kAlice, 1h), 10min) << "who passed that is of another kind";
}

TEST(History, LearnsFromJobsThatWereStopped) {
  History with;
  History without;
  for (int i = 0; i < 30; ++i) {
    with.record(kAlice, 0s, 90s, Seen::Ended);
    without.record(kAlice, 0s, 90s, Seen::Ended);
    with.record(kAlice, 0s, 4h, Seen::Stopped);
  }
  EXPECT_GT(with.time_to_end(kAlice, 0s), without.time_to_end(kAlice, 0s));
  EXPECT_EQ(with.run_time(kAlice), without.run_time(kAlice)) << "nothing of them ended";
}

TEST(History, AdaptsToANewCampaign) {
  History history;
  for (int i = 0; i < 1000; ++i) history.record(kAlice, 0s, 45s, Seen::Ended);
  const seconds before = history.time_to_end(kAlice, 0s);
  for (int i = 0; i < 100; ++i) history.record(kAlice, 0s, 5h, Seen::Ended);
  EXPECT_LT(before, 2min);
  EXPECT_GT(history.time_to_end(kAlice, 0s), 1h);
}

TEST(History, ForgetsWhatWasNotSeenForLongest) {
  HistoryRules rules;
  rules.max_levels = 5;
  History history(rules);
  for (int i = 0; i < 20; ++i) history.record(kAlice, 0s, 60s, Seen::Ended);
  for (std::uint32_t uid = 10; uid < 100; ++uid) {
    Signature other = kAlice;
    other.uid = uid;
    history.record(other, 0s, 10h, Seen::Ended);
    EXPECT_LE(history.levels(), 5U);
  }
  Signature stranger = kAlice;
  stranger.uid = 1000;
  EXPECT_EQ(history.run_time(kAlice), history.run_time(stranger));
}

/// What is expected of a job that is alike in everything is between the least and most that was
/// ever seen, give or take the guess, whatever was seen; and the same calls give the same answers.
TEST(History, AnswersAreSaneWhateverWasSeen) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  History one;
  History two;
  for (int i = 0; i < 5000; ++i) {
    Signature like{.limit_class = below(11),
                   .parts = std::int64_t{10'000} << below(8),
                   .uid = static_cast<std::uint32_t>(below(6)),
                   .name = below(2) == 0 ? "" : "run"};
    const seconds before(below(3) == 0 ? below(100'000) : 0);
    const seconds after = before + seconds(1 << below(22));
    const Seen how = below(3) == 0 ? Seen::Stopped : Seen::Ended;
    one.record(like, before, after, how);
    two.record(like, before, after, how);
    const seconds served(1LL << below(40));
    ASSERT_EQ(one.time_to_end(like, served), two.time_to_end(like, served));
    ASSERT_GT(one.time_to_end(like, served), 0s);
    ASSERT_GE(one.run_time(like), 0s);
    ASSERT_LE(one.run_time(like), std::chrono::days(201));
  }
}

}  // namespace
}  // namespace gflow::engine
