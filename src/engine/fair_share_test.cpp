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
  shares.charge(1, 4 * kGpu, 1000s, 0s);
  EXPECT_EQ(shares.used(1, 0s), 4000);
  EXPECT_EQ(shares.used(1, 7 * 24h), 2000);
  EXPECT_EQ(shares.used(1, 14 * 24h), 1000);
  EXPECT_NEAR(static_cast<double>(shares.used(1, 84h)), 4000 * 0.7071, 3);
  EXPECT_EQ(shares.used(2, 0s), 0);
}

TEST(FairShare, HowOftenItIsChargedDoesNotMatter) {
  FairShare once;
  FairShare often;
  for (int hour = 0; hour < 24 * 7; ++hour) often.charge(1, 1, 1s, hour * 1h);
  for (FairShare* shares : {&once, &often}) shares->charge(1, kGpu, 100'000s, 24h * 7);
  EXPECT_NEAR(
      static_cast<double>(often.used(1, 24h * 21)), static_cast<double>(once.used(1, 24h * 21)), 5);
}

TEST(FairShare, WhoHadTwiceAnEqualPartStandsBack) {
  FairShare shares;
  shares.charge(1, kGpu, 1000s, 0s);
  EXPECT_EQ(shares.standing(1, 0s), 0s) << "alone, all is an equal part";
  shares.charge(2, kGpu, 1000s, 0s);
  shares.charge(3, kGpu, 1000s, 0s);
  shares.charge(4, kGpu, 1000s, 0s);
  EXPECT_EQ(shares.standing(1, 0s), 0s);
  shares.charge(1, kGpu, 4000s, 0s);  // 5 of 8, an equal part is 2
  EXPECT_EQ(shares.standing(1, 0s), 6h);
  EXPECT_EQ(shares.standing(2, 0s), 0s);
  EXPECT_EQ(shares.standing(9, 0s), 0s) << "never seen";
  EXPECT_EQ(shares.standing(1, 24h), 6h) << "fades alike for all";
}

TEST(FairShare, WeightsAndBounds) {
  FairShareRules rules;
  rules.weights = {{1, 400}};
  FairShare shares(rules);
  shares.charge(1, kGpu, 4000s, 0s);
  shares.charge(2, kGpu, 1000s, 0s);
  EXPECT_EQ(shares.standing(1, 0s), 0s) << "was promised four times as much";
  FairShareRules small;
  small.max_steps = 1;
  FairShare bounded(small);
  bounded.charge(1, 1000 * kGpu, 1'000'000s, 0s);
  for (std::uint32_t uid = 2; uid < 40; ++uid) bounded.charge(uid, kGpu, 10s, 0s);
  EXPECT_EQ(bounded.standing(1, 0s), 6h);
  FairShareRules off;
  off.step = 0s;
  FairShare none(off);
  none.charge(1, 100 * kGpu, 1000s, 0s);
  none.charge(2, kGpu, 1s, 0s);
  EXPECT_EQ(none.standing(1, 0s), 0s);
}

TEST(FairShare, ForgetsWhoHadNothingForLong) {
  FairShare shares;
  shares.charge(1, kGpu, 1000s, 0s);
  shares.charge(2, kGpu, 1000s, std::chrono::years(2));
  EXPECT_EQ(shares.users(), 1U);
}

/// Never below nothing, never more than was charged, and what is charged to one is no other's.
TEST(FairShare, IsSaneWhateverIsCharged) {
  std::mt19937_64 random(11);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  FairShare shares;
  seconds now = 0s;
  for (int i = 0; i < 5000; ++i) {
    now += seconds(below(50'000));
    const auto uid = static_cast<std::uint32_t>(below(5));
    const std::int64_t before = shares.used(uid, now);
    const std::int64_t other = shares.used(uid + 1, now);
    const std::int64_t parts = below(2) == 0 ? below(100 * kGpu) : below(INT64_MAX);
    const seconds held(below(4) == 0 ? below(1'000'000'000) : below(100'000));
    shares.charge(uid, parts, held, now);
    ASSERT_GE(shares.used(uid, now), before - 1);
    ASSERT_EQ(shares.used(uid + 1, now), other);
    ASSERT_GE(shares.standing(uid, now), 0s);
    ASSERT_LE(shares.standing(uid, now), 48h);
  }
}

}  // namespace
}  // namespace gflow::engine
