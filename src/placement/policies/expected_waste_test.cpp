// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "placement/policies/expected_waste.h"

#include <gtest/gtest.h>

namespace gflow::placement {
namespace {

DemandClass whole(int gpus, std::int64_t milli_cpus, std::int64_t count) {
  return {.demand = {.gpus = gpus, .milli_cpus = milli_cpus}, .count = count};
}

DemandClass part(int milli, std::int64_t milli_cpus, std::int64_t count) {
  return {.demand = {.gpus = 1,
                     .share = Share::milli(milli),
                     .mode = GpuMode::Fraction,
                     .milli_cpus = milli_cpus},
          .count = count};
}

Profile profile(std::vector<DemandClass> classes) {
  const std::size_t typical = classes.size();
  return {.classes = std::move(classes), .typical = typical};
}

TEST(Offers, AreForOneDeviceRoundedUpAndCountedTogether) {
  const auto offers = offers_of(profile({whole(4, 34'000, 6),   // 8.5 CPUs for each
                                         whole(1, 9'000, 2),    // 9
                                         whole(0, 32'000, 90),  // no device
                                         whole(1, 700'000, 1),
                                         part(245, 4'000, 1)}));
  const std::vector<Offer> expected = {{25, 4, 0.1}, {100, 9, 0.8}, {100, 64, 0.1}};
  EXPECT_EQ(offers, expected);
}

TEST(Offers, OfFractionsLeaveOutWholeDevices) {
  const auto fractions = fractions_of(offers_of(
      profile({whole(1, 0, 5), part(250, 1'000, 1), part(250, 8'000, 3), part(500, 0, 4)})));
  const std::vector<Offer> expected = {{25, 0, 0.5}, {50, 0, 0.5}};
  EXPECT_EQ(fractions, expected);
}

TEST(Offers, OfJobsThatTakeTurnsAreNone) {
  const DemandClass turns{.demand = {.gpus = 1, .mode = GpuMode::TimeSlice}, .count = 3};
  EXPECT_TRUE(offers_of(profile({turns})).empty());
  EXPECT_TRUE(offers_of({}).empty());
}

TEST(RemainderWaste, IsWhatNobodyWillTake) {
  const std::vector<Offer> halves = {{50, 0, 1.0}};
  const RemainderWaste one(halves, 1);
  EXPECT_DOUBLE_EQ(one.at(0), 0);
  EXPECT_DOUBLE_EQ(one.at(49), 0.49);
  EXPECT_DOUBLE_EQ(one.at(50), 0);
  EXPECT_DOUBLE_EQ(one.at(80), 0.30);
  EXPECT_DOUBLE_EQ(one.at(100), 0);  // not a remainder
}

TEST(RemainderWaste, WaitsForWhatFitsBetter) {
  // 60 left: a job of 60 comes one time in ten, one of 50 the other nine times.
  const std::vector<Offer> offers = {{50, 0, 0.9}, {60, 0, 0.1}};
  const RemainderWaste soon(offers, 1);
  EXPECT_DOUBLE_EQ(soon.at(60), 0.9 * 0.10 + 0.1 * 0);
  const RemainderWaste later(offers, 50);
  EXPECT_LT(later.at(60), 0.01);         // refuses the 50 until the 60 comes
  EXPECT_DOUBLE_EQ(later.at(59), 0.09);  // for which there is nothing to wait
}

TEST(RemainderWaste, FallsWithTheHorizon) {
  const std::vector<Offer> offers = {{23, 0, 0.2}, {32, 0, 0.3}, {47, 0, 0.3}, {81, 0, 0.2}};
  for (int percent = 1; percent < 100; ++percent) {
    double before = percent / 100.0;
    for (const int horizon : {1, 2, 5, 30, 200}) {
      const double waste = RemainderWaste(offers, horizon).at(percent);
      EXPECT_LE(waste, before) << percent << " after " << horizon;
      EXPECT_GE(waste, 0);
      before = waste;
    }
  }
}

TEST(RemainderWaste, WithoutFractionsIsAllOfIt) {
  const RemainderWaste waste(std::span<const Offer>{}, 10);
  EXPECT_DOUBLE_EQ(waste.at(37), 0.37);
}

TEST(DeviceWaste, IsAllOfItWithoutTheCpus) {
  const std::vector<Offer> offers = {{100, 12, 1.0}};
  const DeviceWaste waste(offers, {.long_horizon = 5, .short_horizon = 5});
  EXPECT_DOUBLE_EQ(waste.at(100, 11), 1);
  EXPECT_DOUBLE_EQ(waste.at(100, 12), 0);
  EXPECT_DOUBLE_EQ(waste.at(100, 11.25), 0.75);
  EXPECT_DOUBLE_EQ(waste.at(100, 500), 0);
  EXPECT_DOUBLE_EQ(waste.at(99, 64), 0.99);
}

TEST(DeviceWaste, IsTheMeanOfTwoHorizons) {
  const std::vector<Offer> offers = {{10, 0, 0.5}, {100, 0, 0.5}};
  const DeviceWaste at_long(offers, {.long_horizon = 8, .short_horizon = 8});
  const DeviceWaste at_short(offers, {.long_horizon = 2, .short_horizon = 2});
  const DeviceWaste both(offers, {.long_horizon = 8, .short_horizon = 2});
  for (const int percent : {5, 10, 55, 100}) {
    EXPECT_DOUBLE_EQ(both.at(percent, 3), (at_long.at(percent, 3) + at_short.at(percent, 3)) / 2);
  }
}

TEST(DeviceWaste, CreditsCpusLeftOver) {
  const std::vector<Offer> offers = {{100, 10, 1.0}};
  const DeviceWaste waste(offers, {.long_horizon = 3, .short_horizon = 3, .cpu_worth = 0.01});
  EXPECT_DOUBLE_EQ(waste.at(50, 4), 0.50 - 0.04);
  EXPECT_DOUBLE_EQ(waste.at(100, 30), 0 - 0.20);
  EXPECT_DOUBLE_EQ(waste.at(100, 100), waste.at(100, 64) - 0.36);
}

TEST(TenantWaste, IsLeastWhenFullAndMostWhenNothingWillCome) {
  const std::vector<Offer> offers = {{23, 0, 0.2}, {32, 0, 0.3}, {47, 0, 0.3}, {81, 0, 0.2}};
  const TenantWaste waste(offers);
  EXPECT_LT(waste.at(0, 1), waste.at(19, 1));
  // The same left: of two jobs one leaves sooner than of one, and the hole can be filled.
  EXPECT_LT(waste.at(19, 2), waste.at(19, 1));
  EXPECT_EQ(waste.at(5, 8), waste.at(5, 30));
  const TenantWaste nobody(std::span<const Offer>{});
  EXPECT_NEAR(nobody.at(100, 0), 1 / 0.3, 1e-9);  // one device idle, discounted for ever
  EXPECT_LT(nobody.at(40, 1), nobody.at(100, 0));
}

}  // namespace
}  // namespace gflow::placement
