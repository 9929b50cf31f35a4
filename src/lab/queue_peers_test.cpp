// SPDX-License-Identifier: Apache-2.0
#include "lab/queue_peers.h"

#include <gtest/gtest.h>

#include <ostream>

namespace gflow::lab {
namespace {

using std::chrono::seconds;

struct Asked {
  int submitted;
  int run_time;
  int gpus;
  int limit = 0;  ///< 0: none
};

struct Row {
  const char* what;
  QueuePeer peer;
  EqualNodes machines;
  std::vector<Asked> jobs;
  std::vector<int> waits;  ///< without the time the jobs ran
  std::vector<int> preemptions = {};
  int guard = 1'000;

  friend void PrintTo(const Row& row, std::ostream* out) { *out << row.what; }
};

class Peer : public ::testing::TestWithParam<Row> {};

TEST_P(Peer, WaitsAsWorkedOutByHand) {
  const Row& row = GetParam();
  std::vector<TraceJob> jobs;
  for (const Asked& asked : row.jobs) {
    TraceJob job;
    job.submitted = seconds(asked.submitted);
    job.run_time = seconds(asked.run_time);
    job.spec.request.gpus = asked.gpus;
    if (asked.limit > 0) job.spec.time_limit = seconds(asked.limit);
    jobs.push_back(job);
  }
  const std::vector<Life> lives =
      play_peer(row.peer, jobs, row.machines, {.guard = seconds(row.guard)});
  ASSERT_EQ(lives.size(), jobs.size());
  for (std::size_t i = 0; i < lives.size(); ++i) {
    ASSERT_TRUE(lives[i].ended) << "job " << i;
    EXPECT_EQ(lives[i].done, jobs[i].run_time) << "job " << i;
    EXPECT_EQ(*lives[i].ended - lives[i].submitted - lives[i].done, seconds(row.waits[i]))
        << "job " << i;
    EXPECT_EQ(lives[i].preemptions, row.preemptions.empty() ? 0 : row.preemptions[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Queue,
    Peer,
    ::testing::Values(
        Row{"fifo: nobody passes",
            QueuePeer::Fifo,
            {1, 4},
            {{0, 100, 3}, {0, 10, 4}, {0, 50, 1}},
            {0, 100, 110}},
        Row{"first fit: whatever fits starts",
            QueuePeer::FirstFit,
            {1, 4},
            {{0, 100, 3}, {0, 10, 4}, {0, 150, 1}},
            {0, 150, 0}},
        Row{"first fit: the oldest of one size first",
            QueuePeer::FirstFit,
            {1, 2},
            {{0, 10, 2}, {1, 10, 2}, {2, 10, 2}},
            {0, 9, 18}},
        Row{"guard: who waited long gets a node, and only as much of it as it needs",
            QueuePeer::Guard,
            {2, 4},
            {{0, 100, 1}, {0, 200, 4}, {1, 10, 4}, {40, 100, 3}, {60, 100, 3}, {70, 100, 1}},
            // The third keeps the first node from 51 on, where the fourth started at 40.
            {0, 0, 139, 0, 90, 80},
            {},
            50},
        Row{"guard: before that whatever fits starts",
            QueuePeer::Guard,
            {1, 4},
            {{0, 100, 3}, {0, 10, 4}, {0, 150, 1}},
            {0, 150, 0}},
        Row{"easy: only who is over in time passes, or takes what is spare",
            QueuePeer::Easy,
            {2, 4},
            {{0, 100, 3, 100}, {0, 100, 3, 100}, {0, 10, 4, 10}, {1, 50, 1, 50}, {2, 200, 1, 200}},
            {0, 0, 100, 0, 0}},
        Row{"easy: who would delay the first waits",
            QueuePeer::Easy,
            {1, 4},
            {{0, 100, 3, 100}, {0, 10, 4, 10}, {1, 200, 1, 200}},
            {0, 100, 109}},
        Row{"more GPUs than a node has are whole nodes",
            QueuePeer::FirstFit,
            {2, 4},
            {{0, 10, 1}, {0, 10, 6}, {0, 10, 3}},
            {0, 10, 0}},
        Row{"tiresias: who had much gives way, and loses a minute",
            QueuePeer::Tiresias,
            {1, 1},
            {{0, 100'000, 1}, {40'000, 10, 1}},
            {70, 0},
            {1, 0}},
        Row{"tiresias: until then first come first served",
            QueuePeer::Tiresias,
            {1, 2},
            {{0, 100'000, 2}, {1'000, 10, 1}},
            {70, 17'000},
            {1, 0}}));

}  // namespace
}  // namespace gflow::lab
