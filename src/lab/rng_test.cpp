// SPDX-License-Identifier: Apache-2.0
#include "lab/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>

namespace gflow::lab {
namespace {

// The first six numbers the reference program pcg32-demo prints: seed 42, stream 54.
TEST(Rng, IsTheReferenceGenerator) {
  Rng rng(42, 54);
  for (const std::uint32_t wanted :
       {0xa15c02b7U, 0x7b47f409U, 0xba1d3330U, 0x83d2f293U, 0xbfa4784bU, 0xcbed606eU}) {
    EXPECT_EQ(rng.next(), wanted);
  }
}

TEST(Rng, GivesEveryNumberBelowAsOften) {
  Rng rng(1);
  std::array<int, 7> seen{};
  constexpr int kDraws = 70'000;
  for (int i = 0; i < kDraws; ++i) ++seen.at(rng.below(7));
  for (const int count : seen) EXPECT_LT(std::abs(count - kDraws / 7), 500);
}

TEST(Rng, ExponentialHasItsMean) {
  Rng rng(3);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) sum += rng.exponential(5.0);
  EXPECT_NEAR(sum / 100'000, 5.0, 0.1);
}

}  // namespace
}  // namespace gflow::lab
