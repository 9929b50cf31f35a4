// SPDX-License-Identifier: Apache-2.0
#include "core/turns.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace gflow {
namespace {

using namespace std::chrono_literals;
using Span = TurnAccount::Span;

TEST(TurnShares, GoByPriorityAndSumUpToTheWhole) {
  struct Case {
    std::vector<int> priorities;
    std::vector<int> parts;
  };
  const std::vector<Case> cases = {{{}, {}},
                                   {{10}, {10'000}},
                                   {{10, 10}, {5'000, 5'000}},
                                   {{10, 10, 10}, {3'334, 3'333, 3'333}},
                                   {{0, 255}, {39, 9'961}},
                                   {{9, 19}, {3'333, 6'667}}};
  for (const Case& row : cases) {
    std::vector<TurnTaker> takers;
    for (const int priority : row.priorities) {
      takers.push_back({JobId(takers.size() + 1), priority});
    }
    std::vector<int> parts;
    for (const TurnShare& share : turn_shares(takers)) parts.push_back(share.time.parts);
    EXPECT_EQ(parts, row.parts) << row.priorities.size();
  }
}

TEST(TurnAccount, IsEmptyWithoutJobs) {
  TurnAccount account;
  EXPECT_EQ(account.next(), std::nullopt);
  account.charge(JobId(1), 5ms);
  account.leave(JobId(1));
  EXPECT_EQ(account.longest_wait(), 0ms);
}

TEST(TurnAccount, DoesNotOweTheTimeBeforeOneJoined) {
  TurnAccount account(1s);
  account.join({JobId(1), 10});
  for (int i = 0; i < 100; ++i) account.charge(JobId(1), 1s);
  account.join({JobId(2), 10});
  int second = 0;
  for (int i = 0; i < 10; ++i) {
    const JobId has = account.next()->first;
    second += has == JobId(2) ? 1 : 0;
    account.charge(has, 1s);
  }
  EXPECT_EQ(second, 5);
  // Alone again, and joined again: still nothing is owed.
  account.leave(JobId(1));
  account.leave(JobId(2));
  account.join({JobId(3), 10});
  account.join({JobId(1), 10});
  EXPECT_EQ(account.next()->first, JobId(1));
}

/// Whatever the priorities, and however long turns really are (a kernel is not cut short), two jobs
/// that both want the device all the time have had the same by weight, within a turn of each.
TEST(TurnAccount, IsFairAtEveryMoment) {
  std::mt19937 random(7);
  for (int life = 0; life < 200; ++life) {
    TurnAccount account(2s);
    std::vector<TurnTaker> takers;
    const auto count = 2 + random() % 3;
    for (std::uint64_t i = 1; i <= count; ++i) {
      takers.push_back({JobId(i), static_cast<int>(random() % 256)});
      account.join(takers.back());
    }
    constexpr Span kLongest = 3s;
    for (int turn = 0; turn < 500; ++turn) {
      const JobId has = account.next()->first;
      account.charge(has, Span(1 + static_cast<int>(random() % kLongest.count())));
      for (const TurnTaker& a : takers) {
        for (const TurnTaker& b : takers) {
          const double had_a = static_cast<double>(account.had(a.job).count()) / (a.priority + 1);
          const double had_b = static_cast<double>(account.had(b.job).count()) / (b.priority + 1);
          const double most = static_cast<double>(kLongest.count()) / (a.priority + 1) + 1.0;
          ASSERT_LE(had_a - had_b, most) << "life " << life << " turn " << turn;
        }
      }
    }
  }
}

TEST(TurnAccount, KeepsNobodyWaitingLongerThanItSays) {
  std::mt19937 random(11);
  for (int life = 0; life < 100; ++life) {
    TurnAccount account(2s);
    const auto count = 2 + random() % 3;
    for (std::uint64_t i = 1; i <= count; ++i) {
      account.join({JobId(i), static_cast<int>(random() % 30)});
    }
    std::map<JobId, Span> since;
    for (int turn = 0; turn < 400; ++turn) {
      const JobId has = account.next()->first;
      account.charge(has, 2s);
      for (std::uint64_t i = 1; i <= count; ++i) {
        Span& waited = since[JobId(i)];
        waited = JobId(i) == has ? 0s : waited + 2s;
        ASSERT_LE(waited, account.longest_wait() + 2s) << "life " << life << " turn " << turn;
      }
    }
  }
}

}  // namespace
}  // namespace gflow
