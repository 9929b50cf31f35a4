// SPDX-License-Identifier: Apache-2.0
#include "engine/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

Contender contender(seconds ready, std::int64_t gpus = 1, std::uint32_t uid = 1) {
  return {.ready = ready,
          .signature = {.limit_class = 0, .parts = gpus * 10'000, .uid = uid, .name = ""}};
}

/// User 1 runs minutes, user 2 days.
History two_users() {
  History history;
  for (int i = 0; i < 100; ++i) {
    for (const std::int64_t parts : {10'000, 80'000}) {
      history.record({.parts = parts, .uid = 1}, 0s, 5min, Seen::Ended);
      history.record({.parts = parts, .uid = 2}, 0s, 72h, Seen::Ended);
    }
  }
  return history;
}

TEST(Allowance, GrowsWithTheCubeOfOctaves) {
  OrderRules rules;
  rules.octaves = 16;
  rules.allowance = 2'000'000s;
  const struct {
    std::int64_t hold;
    std::int64_t wanted;
  } rows[] = {{0, 0},
              {64, 0},
              {128, 488},                          // one octave in 16: 2,000,000 / 4096
              {std::int64_t{1} << 14, 250'000},    // 8 octaves: an eighth
              {std::int64_t{1} << 22, 2'000'000},  // all 16
              {std::int64_t{1} << 40, 2'000'000}};
  for (const auto& row : rows) {
    EXPECT_EQ(allowance(rules, row.hold, false).count(), row.wanted) << row.hold;
  }
  EXPECT_EQ(allowance(rules, std::int64_t{1} << 30, true), rules.max_allowance);
}

TEST(Allowance, IsLessOnABiggerMachine) {
  OrderRules small;
  small.gpus = OrderRules::kReferenceGpus;
  OrderRules big;
  big.gpus = OrderRules::kReferenceGpus * 32;  // five doublings: two octaves
  const std::int64_t hold = std::int64_t{1} << 14;
  EXPECT_EQ(allowance(big, hold * 4, false), allowance(small, hold, false));
  EXPECT_LT(allowance(big, hold, false), allowance(small, hold, false));
  OrderRules one;
  one.gpus = 0;
  EXPECT_GT(allowance(one, hold, false), allowance(small, hold, false)) << "0 counts as one";
}

TEST(Allowance, NeverShrinksAsTheHoldGrows) {
  const OrderRules rules;
  seconds last{0};
  for (std::int64_t hold = 1; hold < (std::int64_t{1} << 42); hold += 1 + hold / 7) {
    const seconds given = allowance(rules, hold, false);
    ASSERT_GE(given, last) << hold;
    last = given;
  }
}

TEST(ExpectedHold, CountsGpusByTheirRoot) {
  const History history = two_users();
  const std::int64_t one = expected_hold(history, contender(0s, 1));
  const std::int64_t eight = expected_hold(history, contender(0s, 8));
  EXPECT_NEAR(static_cast<double>(eight) / static_cast<double>(one), 2.83, 0.05);
  Contender half = contender(0s, 1);
  half.signature.parts = 0;
  EXPECT_GT(expected_hold(history, half), 0) << "a job without GPUs still takes time";
  half.signature.parts = INT64_MAX;
  EXPECT_GT(expected_hold(history, half), 0) << "no overflow";
}

TEST(ExpectedHold, IsNoMoreThanTheLimit) {
  const History history = two_users();
  Contender job = contender(0s, 1, 2);
  EXPECT_GT(expected_hold(history, job), 60 * 3600);
  job.limit = 1h;
  EXPECT_EQ(expected_hold(history, job), 3600);
}

TEST(Place, ShortJobsGoFirstUntilTheLongOneHasWaited) {
  const OrderRules rules;
  const History history = two_users();
  const auto place = [&](seconds ready, std::uint32_t uid) {
    return place_of(rules, history, contender(ready, 1, uid), ready);
  };
  EXPECT_LT(place(2h, 1), place(0h, 2)) << "short before long";
  EXPECT_LT(place(0h, 1), place(1h, 1)) << "among equals the first";
  EXPECT_GT(place(std::chrono::days(14), 1), place(0h, 2)) << "but not for ever";
}

TEST(Place, WaitingCountsTheMoreTheLongerItTakes) {
  const OrderRules rules;
  const History history = two_users();
  const auto gained = [&](Contender job, seconds waited) {
    const Place fresh = place_of(rules, history, job, job.ready);
    return seconds(fresh.value - place_of(rules, history, job, job.ready + waited).value);
  };
  const Contender job = contender(1000s, 8, 2);
  EXPECT_LT(gained(job, 24h), 90min) << "a day is not much more than a day";
  EXPECT_NEAR(static_cast<double>(gained(job, rules.guard / 2).count()),
              static_cast<double>(rules.guard.count()) / 8,
              1000);
  const seconds last_hour = gained(job, rules.guard - 1s) - gained(job, rules.guard - 1h - 1s);
  EXPECT_NEAR(static_cast<double>(last_hour.count()), 3600, 600) << "as much again at the guard";
  for (seconds waited = 0s; waited < rules.guard; waited += 7h) {
    ASSERT_LE(gained(job, waited), gained(job, std::min(waited + 7h, rules.guard - 1s)));
  }
  Contender stoppable = job;
  stoppable.stoppable = true;
  EXPECT_EQ(gained(stoppable, 5 * 24h), 0s) << "its place would fall back when it starts";
}

TEST(Place, BySubmissionIsFirstComeFirstServed) {
  OrderRules rules;
  rules.order = Order::Submission;
  const History history = two_users();
  EXPECT_LT(place_of(rules, history, contender(0s, 8, 2), 0s),
            place_of(rules, history, contender(1s, 1, 1), 1s));
  EXPECT_EQ(guarded_at(rules, contender(0s).waiter(), 0s), std::nullopt);
}

TEST(Place, WhoWaitedLongestOfAllIsGuarded) {
  const OrderRules rules;
  const History history = two_users();
  const Contender old = contender(1000s, 8, 2);
  const auto due = guarded_at(rules, old.waiter(), 2000s);
  ASSERT_EQ(due, 1000s + rules.guard);
  EXPECT_FALSE(place_of(rules, history, old, *due - 1s).guarded);
  const Place guarded = place_of(rules, history, old, *due);
  EXPECT_TRUE(guarded.guarded);
  EXPECT_EQ(guarded_at(rules, old.waiter(), *due), std::nullopt);
  EXPECT_LT(guarded, place_of(rules, history, contender(0s, 1, 1), 0s));
  EXPECT_LT(place_of(rules, history, contender(999s, 8, 2), *due), guarded);
  EXPECT_LT(rank_of(guarded), rank_of({false, -1'000'000'000}));
}

TEST(Place, JobsThatCanBeStoppedFallBackAsTheyAreServed) {
  const OrderRules rules;
  const History history = two_users();
  Contender job = contender(0s, 1, 1);
  job.stoppable = true;
  const Place fresh = place_of(rules, history, job, 0s);
  job.served = 20h;
  const Place served = place_of(rules, history, job, 20h);
  EXPECT_LT(fresh, served);
  EXPECT_LE(served.value, (rules.max_allowance + 20h).count());
  EXPECT_EQ(guarded_at(rules, job.waiter(), 20h), std::nullopt);
}

TEST(Place, StandingBackMovesItBack) {
  const OrderRules rules;
  const History history;
  Contender job = contender(0s);
  const Place before = place_of(rules, history, job, 0s);
  job.penalty = 6h;
  EXPECT_EQ(place_of(rules, history, job, 0s).value, before.value + 6 * 3600);
}

/// Whatever comes later than the longest allowance after a job is behind it, and rank_of() agrees
/// with the order of places.
TEST(Place, NobodyWaitsWithoutEnd) {
  const OrderRules rules;
  const History history = two_users();
  std::mt19937 random(3);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  const auto any = [&](seconds ready) {
    Contender job = contender(ready, 1 + below(64), static_cast<std::uint32_t>(below(3)));
    job.stoppable = below(2) == 0;
    if (job.stoppable) job.served = seconds(below(100'000));
    return job;
  };
  for (int i = 0; i < 2000; ++i) {
    const Contender first = any(seconds(below(100'000)));
    const seconds most = first.stoppable ? rules.max_allowance : rules.allowance;
    const Contender later = any(first.ready + first.served + most + 1s);
    const Place a = place_of(rules, history, first, later.ready);
    const Place b = place_of(rules, history, later, later.ready);
    ASSERT_LT(a, b);
    ASSERT_LT(rank_of(a), rank_of(b));
  }
}

}  // namespace
}  // namespace gflow::engine
