// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "engine/preemption_rules.h"

#include <gtest/gtest.h>

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

constexpr PreemptionRules kRules{.quantum = 600s, .hysteresis = 1000s};

TEST(PreemptionRules, OnlyForWhoIsFarEnoughAhead) {
  const struct {
    const char* what;
    Place running;
    Place waiting;
    bool wanted;
  } rows[] = {
      {"far ahead", {false, 5000}, {false, 3000}, true},
      {"a little ahead", {false, 4000}, {false, 3000}, false},
      {"more than a little", {false, 4001}, {false, 3000}, true},
      {"behind", {false, 3000}, {false, 5000}, false},
      {"guarded", {false, 3000}, {true, 5000}, true},
      {"not for the guarded one", {true, 90'000}, {false, 0}, false},
      {"both guarded", {true, 9000}, {true, 0}, true},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(gives_way(kRules, rank_of(row.running), rank_of(row.waiting)), row.wanted)
        << row.what;
  }
}

/// A job that was stopped for another and queues again with the place it had does not take the
/// devices back at once: no two jobs stop each other in turns.
TEST(PreemptionRules, NeverBothWays) {
  for (std::int64_t a = 0; a < 5000; a += 250) {
    for (std::int64_t b = 0; b < 5000; b += 250) {
      const bool there = gives_way(kRules, a, b);
      const bool back = gives_way(kRules, b, a);
      ASSERT_FALSE(there && back) << a << ' ' << b;
    }
  }
}

TEST(PreemptionRules, LooksAgainWhenTimeAloneCouldChangeIt) {
  EXPECT_EQ(next_look(kRules, 0s, 0s), 30s) << "the next step of service";
  EXPECT_EQ(next_look(kRules, 100s, 5000s), 500s) << "the quantum is over";
  EXPECT_EQ(next_look(kRules, 700s, 3600s), 240s);
  EXPECT_GT(next_look(kRules, 700s, std::chrono::years(50)), 0s);
}

}  // namespace
}  // namespace gflow::engine
