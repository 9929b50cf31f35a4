// SPDX-License-Identifier: Apache-2.0
#include "kube/job_id.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <vector>

#include "base/time.h"

namespace gflow::kube {
namespace {

Pod born(const std::string& uid, const std::string& at) {
  Pod pod;
  pod.uid = uid;
  pod.created = parse_rfc3339(at).value();
  return pod;
}

TEST(JobIdOfAPod, IsAlwaysTheSame) {
  EXPECT_EQ(job_id_of(born("6f1c", "2026-11-28T01:02:03Z")).value, 3416624035086560U);
  EXPECT_EQ(job_id_of(born("6f1d", "2026-11-28T01:02:03Z")).value >> 23,
            job_id_of(born("6f1c", "2026-11-28T01:02:03Z")).value >> 23);
}

TEST(JobIdOfAPod, GrowsWithTheSecondOfItsBirth) {
  const Pod older = born("z", "2026-11-28T01:02:03Z");
  const Pod younger = born("a", "2026-11-28T01:02:04Z");
  EXPECT_LT(job_id_of(older), job_id_of(younger));
}

TEST(JobIdOfAPod, FitsANumberOfJson) {
  for (const char* at : {"1970-01-01T00:00:00Z", "2026-11-28T01:02:03Z", "9999-12-31T23:59:59Z"}) {
    const JobId id = job_id_of(born("x", at));
    EXPECT_TRUE(id.is_set());
    EXPECT_LT(id.value, std::uint64_t{1} << 53) << at;
  }
}

/// Of so many in one second some meet: each has a number of its own, the same in any order.
TEST(JobIdsOfPods, AreEachOnesOwn) {
  std::vector<Pod> pods;
  for (int i = 0; i < 20'000; ++i) pods.push_back(born(std::to_string(i), "2026-11-28T01:02:03Z"));
  std::vector<const Pod*> there;
  for (const Pod& pod : pods) there.push_back(&pod);
  const auto ids = job_ids_of(there);
  std::set<JobId> distinct;
  std::size_t moved = 0;
  for (const Pod& pod : pods) {
    distinct.insert(ids.at(pod.uid));
    moved += ids.at(pod.uid) == job_id_of(pod) ? 0U : 1U;
  }
  EXPECT_EQ(distinct.size(), pods.size());
  EXPECT_GT(moved, 0U);
  EXPECT_LT(moved, 100U);
  EXPECT_EQ(job_ids_of({there.rbegin(), there.rend()}), ids);
}

}  // namespace
}  // namespace gflow::kube
