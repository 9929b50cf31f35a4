// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "os/fd.h"
#include "os/file.h"
#include "store/samples.h"

namespace gflow::store {
namespace {

using namespace samples;

constexpr std::uint64_t kBatchJobs = 3;

/// Commits three jobs at a time until it is killed; writes the first id of each batch once the
/// store has taken it.
[[noreturn]] void commit_for_ever(const std::string& path, int acknowledged) {
  auto store = Store::open(path);
  if (!store) ::_exit(1);
  const Payload what = payload();
  std::uint64_t next = (*store)->load().value().next_id.value;
  while (true) {
    std::vector<Job> jobs;
    for (std::uint64_t i = 0; i < kBatchJobs; ++i) jobs.push_back(queued(next + i));
    Batch batch = batch_of(jobs, what);
    batch.next_id = JobId(next + kBatchJobs);
    if (!(*store)->commit(batch)) ::_exit(1);
    if (::write(acknowledged, &next, sizeof(next)) != sizeof(next)) ::_exit(1);
    next += kBatchJobs;
  }
}

/// The ids a process acknowledged that was killed at the n-th of them, and those it still wrote.
std::vector<std::uint64_t> kill_at(const std::string& path, int n) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const os::Fd read_end(ends[0]);
  os::Fd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) commit_for_ever(path, write_end.get());
  write_end.reset();
  std::vector<std::uint64_t> acknowledged;
  std::uint64_t id = 0;
  while (::read(read_end.get(), &id, sizeof(id)) == sizeof(id)) {
    acknowledged.push_back(id);
    if (acknowledged.size() == static_cast<std::size_t>(n)) ::kill(child, SIGKILL);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  return acknowledged;
}

TEST(CrashTest, WhatWasAcknowledgedIsThere) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  // The last is beyond a checkpoint of the WAL (1000 pages).
  for (const int n : {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 400}) {
    const std::vector<std::uint64_t> acknowledged = kill_at(path, n);
    ASSERT_GE(acknowledged.size(), static_cast<std::size_t>(n));
    auto store = open(path);
    const Loaded loaded = store->load().value();
    EXPECT_EQ(loaded.jobs.size() % kBatchJobs, 0U) << "half a batch after " << n;
    std::vector<std::uint64_t> ids;
    for (const Job& job : loaded.jobs) ids.push_back(job.id.value);
    for (const std::uint64_t first : acknowledged) {
      for (std::uint64_t id = first; id < first + kBatchJobs; ++id) {
        EXPECT_TRUE(std::binary_search(ids.begin(), ids.end(), id)) << id << " after " << n;
        EXPECT_EQ(store->payload(JobId(id)).value(), payload());
      }
    }
    // Ids of a batch that was being committed may be lost, those of a block may not.
    EXPECT_GT(loaded.next_id.value, ids.back());
    EXPECT_LE(loaded.next_id.value, ids.back() + 1 + kBatchJobs);
  }
}

}  // namespace
}  // namespace gflow::store
