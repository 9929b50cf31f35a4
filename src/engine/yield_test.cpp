// SPDX-License-Identifier: Apache-2.0
#include "engine/yield.h"

#include <gtest/gtest.h>

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

constexpr YieldRules kRules{.quantum = 600s, .hysteresis = 1000s, .hysteresis_percent = 10};

TEST(Yield, OnlyForWhoIsFarEnoughAhead) {
  const struct {
    const char* what;
    Place running;
    seconds ran;
    Claim waiting;
    bool wanted;
  } rows[] = {
      {"far ahead", {false, 5000}, 600s, {{false, 3000}, 0s}, true},
      {"just started", {false, 5000}, 599s, {{false, 3000}, 0s}, false},
      {"a little ahead", {false, 4000}, 600s, {{false, 3000}, 0s}, false},
      {"more than a little", {false, 4001}, 600s, {{false, 3000}, 0s}, true},
      {"a long job has to be further ahead", {false, 4001}, 600s, {{false, 3000}, 50s}, false},
      {"and is", {false, 4006}, 600s, {{false, 3000}, 50s}, true},
      {"behind", {false, 3000}, 600s, {{false, 5000}, 0s}, false},
      {"guarded", {false, 3000}, 600s, {{true, 5000}, 0s}, true},
      {"not for the guarded one", {true, 90'000}, 600s, {{false, 0}, 0s}, false},
      {"both guarded", {true, 9000}, 600s, {{true, 0}, 0s}, true},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(gives_way(kRules, row.running, row.ran, row.waiting), row.wanted) << row.what;
  }
}

/// A job that was stopped for another and queues again with the place it had does not take the
/// devices back at once: no two jobs stop each other in turns.
TEST(Yield, NeverBothWays) {
  for (std::int64_t a = 0; a < 5000; a += 250) {
    for (std::int64_t b = 0; b < 5000; b += 250) {
      const bool there = gives_way(kRules, {false, a}, 1h, {{false, b}, 0s});
      const bool back = gives_way(kRules, {false, b}, 1h, {{false, a}, 0s});
      ASSERT_FALSE(there && back) << a << ' ' << b;
    }
  }
}

TEST(Yield, LooksAgainWhenTimeAloneCouldChangeIt) {
  EXPECT_EQ(next_look(kRules, 0s, 0s), 30s) << "the next step of service";
  EXPECT_EQ(next_look(kRules, 100s, 5000s), 500s) << "the quantum is over";
  EXPECT_EQ(next_look(kRules, 700s, 3600s), 240s);
  EXPECT_GT(next_look(kRules, 700s, std::chrono::years(50)), 0s);
}

}  // namespace
}  // namespace gflow::engine
