// SPDX-License-Identifier: Apache-2.0
#include "daemon/job_watch.h"

#include <gtest/gtest.h>

namespace gflow::daemon {
namespace {

using namespace std::chrono_literals;

const WallTime kStart{std::chrono::milliseconds(1'772'366'400'000)};

Job queued() {
  Job job;
  job.id = JobId(7);
  job.submitted = kStart;
  job.spec.request.gpus = 2;
  job.spec.request.share = Share::percent(50);
  job.state = Queued{};
  return job;
}

Job running(int attempt, std::chrono::seconds after) {
  Job job = queued();
  job.attempts = attempt;
  Running state;
  state.attempt.number = attempt;
  state.attempt.started = kStart + after;
  state.attempt.started_mono = MonoTime(after);
  state.attempt.boot_id = "boot";
  job.state = state;
  return job;
}

Job ended(const Job& ran, Status status, std::chrono::milliseconds run_time) {
  Job job = ran;
  Ended end;
  end.status = status;
  end.attempt = std::get<Running>(ran.state).attempt;
  end.outcome.run_time = run_time;
  end.at = end.attempt->started + run_time;
  job.state = end;
  return job;
}

/// One that saw no time pass before its boot.
const engine::State& state() {
  static const engine::State state{engine::Policy{}, "boot"};
  return state;
}

std::uint64_t count_of(const server::Histogram& histogram) {
  std::uint64_t count = 0;
  for (const auto& bucket : histogram.buckets()) count += bucket.count;
  return count;
}

TEST(JobWatch, CountsAStartOnceAndAnEnd) {
  server::Counters counters;
  JobWatch watch(counters, state());
  watch.see(queued(), "");
  EXPECT_EQ(counters.started, 0U);
  watch.see(running(1, 90s), "");
  watch.see(running(1, 90s), "");
  EXPECT_EQ(counters.started, 1U);
  EXPECT_EQ(counters.wait.sum(), 90);
  watch.see(ended(running(1, 90s), Status::Failed, 60s), "abc");
  EXPECT_EQ(counters.ended.at(static_cast<std::size_t>(Status::Failed)), 1U);
  EXPECT_EQ(counters.gpu_seconds, 60) << "two halves of a GPU for a minute";
  EXPECT_EQ(count_of(counters.run_time), 1U);
  for (const auto& bucket : counters.run_time.buckets()) {
    EXPECT_EQ(bucket.exemplar.has_value(), bucket.count == 1);
    if (bucket.exemplar) {
      EXPECT_EQ(bucket.exemplar->trace_id, "abc");
    }
  }
}

TEST(JobWatch, CountsWhatOneHeldThatEndedWhileItWaitedAgain) {
  server::Counters counters;
  Job job = queued();
  job.served = 60s;
  job.served_gpu_time = 240s;  // it asked for more then
  job.state = Ended{.status = Status::Cancelled};
  JobWatch(counters, state()).see(job, "");
  EXPECT_EQ(counters.gpu_seconds, 240);
  EXPECT_EQ(count_of(counters.run_time), 0U);
}

TEST(JobWatch, CountsOneThatStartedAndEndedBetweenTwoLooks) {
  server::Counters counters;
  JobWatch(counters, state()).see(ended(running(1, 5s), Status::Finished, 1s), "");
  EXPECT_EQ(counters.started, 1U);
  EXPECT_EQ(count_of(counters.wait), 1U);
}

TEST(JobWatch, AClockThatIsSetMakesNoJobWaitLonger) {
  using std::chrono::days;
  for (const days set : {days(10), days(-10)}) {
    server::Counters counters;
    Job job = running(1, 90s);
    std::get<Running>(job.state).attempt.started += set;
    JobWatch(counters, state()).see(job, "");
    EXPECT_EQ(counters.wait.sum(), 90);
  }
}

TEST(JobWatch, TellsWhyAJobIsQueuedAgain) {
  using server::Requeue;
  const auto requeued = [](int preemptions, int retries) {
    server::Counters counters;
    JobWatch watch(counters, state());
    watch.see(running(1, 1s), "");
    Job again = queued();
    again.attempts = 1;
    again.preemptions = preemptions;
    again.retries = retries;
    watch.see(again, "");
    watch.see(again, "");
    watch.see(running(2, 2s), "");
    EXPECT_EQ(counters.started, 2U);
    EXPECT_EQ(count_of(counters.wait), 1U) << "of the first start";
    return counters.requeued;
  };
  using Counts = std::array<std::uint64_t, 3>;
  EXPECT_EQ(requeued(1, 0), (Counts{1, 0, 0}));
  EXPECT_EQ(requeued(0, 1), (Counts{0, 1, 0}));
  EXPECT_EQ(requeued(0, 0), (Counts{0, 0, 1}));
}

TEST(JobWatch, CountsOneThatWasQueuedAgainAndStartedBetweenTwoLooks) {
  server::Counters counters;
  JobWatch watch(counters, state());
  watch.see(running(1, 1s), "");
  Job again = running(2, 2s);
  again.retries = 1;
  watch.see(again, "");
  EXPECT_EQ(counters.requeued.at(static_cast<std::size_t>(server::Requeue::Failed)), 1U);
  EXPECT_EQ(counters.started, 2U);
}

TEST(JobWatch, WhatRanBeforeTheDaemonDidNotStartNow) {
  server::Counters counters;
  JobWatch watch(counters, state());
  watch.know(running(1, 5s));
  watch.see(running(1, 5s), "");
  EXPECT_EQ(counters.started, 0U);
  watch.see(ended(running(1, 5s), Status::Finished, 1s), "");
  EXPECT_EQ(counters.started, 0U);
  EXPECT_EQ(count_of(counters.run_time), 1U);
}

}  // namespace
}  // namespace gflow::daemon
