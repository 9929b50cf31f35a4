// SPDX-License-Identifier: Apache-2.0
#include "engine/run_set.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "engine/line.h"

namespace gflow::engine {
namespace {

QueueKey key_of(int priority, int rank, int id) {
  return {priority, rank, JobId(static_cast<std::uint64_t>(id))};
}

/// Both hold the same, wherever one looks from.
template <typename Key>
void check_same(const RunSet<Key>& runs, const std::set<Key>& plain, const Key& sought) {
  RC_ASSERT(runs.size() == plain.size());
  RC_ASSERT(runs.empty() == plain.empty());
  RC_ASSERT(runs.contains(sought) == plain.contains(sought));
  RC_ASSERT(std::equal(runs.begin(), runs.end(), plain.begin(), plain.end()));
  RC_ASSERT(std::equal(std::make_reverse_iterator(runs.end()),
                       std::make_reverse_iterator(runs.begin()),
                       plain.rbegin(),
                       plain.rend()));
  RC_ASSERT(
      std::equal(runs.lower_bound(sought), runs.end(), plain.lower_bound(sought), plain.end()));
  RC_ASSERT(
      std::equal(runs.upper_bound(sought), runs.end(), plain.upper_bound(sought), plain.end()));
  if (plain.empty()) return;
  RC_ASSERT(runs.front() == *plain.begin());
  RC_ASSERT(runs.back() == *plain.rbegin());
}

/// Runs are as long as they can be, however they came to be.
template <typename Key>
std::size_t runs_of(const std::set<Key>& plain) {
  std::size_t runs = 0;
  const Key* before = nullptr;
  for (const Key& key : plain) {
    Key next = before == nullptr ? key : *before;
    ++id_of(next).value;
    if (before == nullptr || next != key) ++runs;
    before = &key;
  }
  return runs;
}

RC_GTEST_PROP(RunSet, IsAsASetOfJobs, ()) {
  RunSet<JobId> runs;
  std::set<JobId> plain;
  for (const auto& [id, out] : *rc::gen::container<std::vector<std::pair<int, bool>>>(rc::gen::pair(
           rc::gen::inRange(1, 24), rc::gen::weightedElement<bool>({{3, false}, {2, true}})))) {
    const JobId key(static_cast<std::uint64_t>(id));
    if (out) {
      RC_ASSERT(runs.erase(key) == plain.erase(key));
    } else {
      runs.insert(key);
      plain.insert(key);
    }
    check_same(runs, plain, JobId(*rc::gen::inRange<std::uint64_t>(0, 25)));
    RC_ASSERT(runs.runs() == runs_of(plain));
  }
}

RC_GTEST_PROP(RunSet, IsAsASetOfPlaces, ()) {
  const auto any_key = rc::gen::apply(
      key_of, rc::gen::element(5, 10), rc::gen::inRange(0, 2), rc::gen::inRange(1, 12));
  RunSet<QueueKey> runs;
  std::set<QueueKey> plain;
  for (const auto& [key, out] : *rc::gen::container<std::vector<std::pair<QueueKey, bool>>>(
           rc::gen::pair(any_key, rc::gen::weightedElement<bool>({{3, false}, {2, true}})))) {
    if (out) {
      RC_ASSERT(runs.erase(key) == plain.erase(key));
    } else {
      runs.insert(key);
      plain.insert(key);
    }
    check_same(runs, plain, *any_key);
    RC_ASSERT(runs.runs() == runs_of(plain));
  }
}

TEST(RunSet, AnArrayIsOneRun) {
  RunSet<JobId> runs;
  for (std::uint64_t id = 1; id <= 10'000; ++id) runs.insert(JobId(id));
  EXPECT_EQ(runs.runs(), 1U);
  for (std::uint64_t id = 1; id <= 5'000; ++id) EXPECT_EQ(runs.erase(JobId(id)), 1U);
  EXPECT_EQ(runs.runs(), 1U);
  EXPECT_EQ(runs.front(), JobId(5'001));
  EXPECT_EQ(runs.size(), 5'000U);
}

}  // namespace
}  // namespace gflow::engine
