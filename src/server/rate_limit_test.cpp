// SPDX-License-Identifier: Apache-2.0
#include "server/rate_limit.h"

#include <gtest/gtest.h>

#include <string>

namespace gflow::server {
namespace {

using std::chrono::seconds;

constexpr std::size_t kFree = 10;

TEST(RateLimit, SomeAreFreeAndThenOneWaitsForTheRestOfTheWindow) {
  RateLimit tries(kFree);
  const MonoTime start(std::chrono::hours(1));
  for (std::size_t i = 0; i < kFree; ++i) {
    EXPECT_EQ(tries.count("10.0.0.1", start).wait, seconds(0));
  }
  const RateLimit::Verdict first = tries.count("10.0.0.1", start);
  EXPECT_EQ(first.wait, RateLimit::kWindow);
  EXPECT_TRUE(first.is_first);
  EXPECT_FALSE(tries.count("10.0.0.1", start).is_first);
  EXPECT_EQ(tries.count("10.0.0.1", start + seconds(20)).wait, RateLimit::kWindow - seconds(20));
  EXPECT_EQ(tries.count("10.0.0.2", start).wait, seconds(0));
  EXPECT_EQ(tries.count("10.0.0.1", start + RateLimit::kWindow).wait, seconds(0));
}

TEST(RateLimit, ManyAddressesTakeNoMoreThanSoMuch) {
  RateLimit tries(kFree);
  const MonoTime start(std::chrono::hours(1));
  for (std::size_t i = 0; i < 3 * RateLimit::kMost; ++i) {
    EXPECT_EQ(tries.count(std::to_string(i), start).wait, seconds(0));
  }
}

}  // namespace
}  // namespace gflow::server
