// SPDX-License-Identifier: Apache-2.0
#include "server/failed_tries.h"

#include <gtest/gtest.h>

#include <string>

namespace gflow::server {
namespace {

using std::chrono::seconds;

TEST(FailedTries, SomeAreFreeAndThenOneWaitsForTheRestOfTheWindow) {
  FailedTries tries;
  const MonoTime start(std::chrono::hours(1));
  for (std::size_t i = 0; i < FailedTries::kFree; ++i) {
    EXPECT_EQ(tries.count("10.0.0.1", start).wait, seconds(0));
  }
  const FailedTries::Verdict first = tries.count("10.0.0.1", start);
  EXPECT_EQ(first.wait, FailedTries::kWindow);
  EXPECT_TRUE(first.is_first);
  EXPECT_FALSE(tries.count("10.0.0.1", start).is_first);
  EXPECT_EQ(tries.count("10.0.0.1", start + seconds(20)).wait, FailedTries::kWindow - seconds(20));
  EXPECT_EQ(tries.count("10.0.0.2", start).wait, seconds(0));
  EXPECT_EQ(tries.count("10.0.0.1", start + FailedTries::kWindow).wait, seconds(0));
}

TEST(FailedTries, ManyAddressesTakeNoMoreThanSoMuch) {
  FailedTries tries;
  const MonoTime start(std::chrono::hours(1));
  for (std::size_t i = 0; i < 3 * FailedTries::kMost; ++i) {
    EXPECT_EQ(tries.count(std::to_string(i), start).wait, seconds(0));
  }
}

}  // namespace
}  // namespace gflow::server
