// SPDX-License-Identifier: Apache-2.0
#include "base/share.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace gflow {
namespace {

TEST(Share, IsWrittenAsTheShortestExactDecimal) {
  const std::vector<std::pair<int, std::string>> cases = {{0, "0"},
                                                          {1, "0.0001"},
                                                          {3333, "0.3333"},
                                                          {5000, "0.5"},
                                                          {7500, "0.75"},
                                                          {10'000, "1"},
                                                          {20'000, "2"},
                                                          {12'500, "1.25"},
                                                          {100'000, "10"},
                                                          {-2500, "-0.25"}};
  for (const auto& [parts, text] : cases) EXPECT_EQ(share_text(Share{parts}), text) << parts;
}

TEST(Share, AddsUpExactly) {
  Share sum;
  for (int i = 0; i < 10; ++i) sum += Share::percent(10);
  EXPECT_EQ(sum, Share::whole());
  EXPECT_EQ(Share::milli(470).parts, 4700);
  EXPECT_EQ(Share::whole() - Share::percent(25), Share{7500});
}

}  // namespace
}  // namespace gflow
