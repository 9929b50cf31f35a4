// SPDX-License-Identifier: Apache-2.0
#include "engine/fair_share.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "base/share.h"

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

constexpr std::int64_t kGpu = Share::kWholeParts;

TEST(FairShare, CountsGpuSecondsAndHalvesThem) {
  FairShare shares;
  shares.charge(1, 4000s, 0s);
  EXPECT_EQ(shares.used(1, 0s), 4000);
  EXPECT_EQ(shares.used(1, 7 * 24h), 2000);
  EXPECT_EQ(shares.used(1, 14 * 24h), 1000);
  EXPECT_NEAR(static_cast<double>(shares.used(1, 84h)), 4000 * 0.7071, 3);
  EXPECT_EQ(shares.used(2, 0s), 0);
}

TEST(FairShare, HowOftenItIsChargedDoesNotMatter) {
  FairShare once;
  FairShare often;
  for (int hour = 0; hour < 24 * 7; ++hour) often.charge(1, 1ms, hour * 1h);
  for (FairShare* shares : {&once, &often}) shares->charge(1, 100'000s, 24h * 7);
  EXPECT_NEAR(
      static_cast<double>(often.used(1, 24h * 21)), static_cast<double>(once.used(1, 24h * 21)), 5);
}

/// Users 1 to 4 have jobs that may start.
FairShare four_users(FairShareRules rules = {}) {
  FairShare shares(rules);
  for (std::uint32_t uid = 1; uid <= 4; ++uid) shares.wait(uid, 1);
  return shares;
}

TEST(FairShare, WhoHadMoreThanAnEqualPartStandsBack) {
  const FairShareRules rules;
  FairShare shares = four_users();
  for (std::uint32_t uid = 1; uid <= 4; ++uid) shares.charge(uid, 1000s, 0s);
  shares.settle(0s);
  for (std::uint32_t uid = 1; uid <= 4; ++uid) EXPECT_EQ(shares.penalty(uid), 0s) << uid;
  shares.charge(1, 4000s, 0s);  // 5 of 8, an equal part is 2
  EXPECT_FALSE(shares.settle(0s));
  EXPECT_EQ(shares.penalty(1), rules.lead + rules.step);
  EXPECT_EQ(shares.penalty(2), 0s);
  EXPECT_EQ(shares.penalty(9), 0s) << "never seen";
}

TEST(FairShare, OnlyThoseCompeteWhoHaveJobs) {
  FairShare shares;
  shares.charge(1, 4000s, 0s);
  shares.charge(2, 1000s, 0s);
  shares.wait(1, 3);
  shares.settle(0s);
  EXPECT_EQ(shares.penalty(1), 0s) << "alone, all is an equal part";
  shares.wait(2, 1);
  shares.settle(0s);
  EXPECT_GT(shares.penalty(1), 0s);
  shares.wait(2, -1);
  EXPECT_TRUE(shares.settle(0s));
  EXPECT_EQ(shares.penalty(1), 0s);
}

TEST(FairShare, WhatIsHeldCountsAtOnce) {
  FairShare shares;
  shares.charge(1, 1h, 0s);
  shares.charge(2, 1h, 0s);
  shares.wait(1, 1);
  shares.wait(2, 1);
  shares.hold(1, kGpu);
  shares.settle(0s);
  EXPECT_GT(shares.penalty(1), 0s);
  EXPECT_EQ(shares.penalty(2), 0s);
  shares.hold(2, kGpu);
  EXPECT_TRUE(shares.settle(0s));
  EXPECT_EQ(shares.penalty(1), 0s);
  shares.carry(1, 4 * 7 * 24h, 1);
  shares.settle(0s);
  EXPECT_GT(shares.penalty(1), 0s) << "what a job had that is queued again";
  shares.carry(1, 4 * 7 * 24h, -1);
  EXPECT_TRUE(shares.settle(0s));
}

TEST(FairShare, HasBoundsAndCanBeOff) {
  FairShareRules small;
  small.max_steps = 1;
  FairShare bounded = four_users(small);
  bounded.charge(1, 1'000'000'000s, 0s);
  bounded.settle(0s);
  EXPECT_EQ(bounded.penalty(1), small.lead + small.step);
  FairShareRules off;
  off.step = 0s;
  FairShare none = four_users(off);
  none.charge(1, 100'000s, 0s);
  none.settle(0s);
  EXPECT_EQ(none.penalty(1), 0s);
}

TEST(FairShare, ForgetsWhoHadNothingForLong) {
  FairShare shares;
  shares.charge(1, 1000s, 0s);
  shares.charge(2, 1000s, std::chrono::years(2));
  EXPECT_EQ(shares.users(), 1U);
}

/// Never below nothing, never more than was charged, and what is charged to one is no other's.
TEST(FairShare, IsSaneWhateverIsCharged) {
  std::mt19937_64 random(11);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  FairShare shares = four_users();
  seconds now = 0s;
  for (int i = 0; i < 5000; ++i) {
    now += seconds(below(50'000));
    const auto uid = static_cast<std::uint32_t>(below(5));
    const std::int64_t before = shares.used(uid, now);
    const std::int64_t other = shares.used(uid + 1, now);
    const std::chrono::milliseconds gpu_time(below(2) == 0 ? below(10'000'000'000)
                                                           : below(INT64_MAX));
    shares.charge(uid, gpu_time, now);
    ASSERT_GE(shares.used(uid, now), before - 1);
    ASSERT_EQ(shares.used(uid + 1, now), other);
    shares.settle(now);
    ASSERT_GE(shares.penalty(uid), 0s);
    ASSERT_LE(shares.penalty(uid), FairShareRules{}.lead + 48h);
  }
}

}  // namespace
}  // namespace gflow::engine
