// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "core/job.h"

namespace gflow {
namespace {

using namespace std::chrono_literals;

TEST(Status, NumbersAreOneAfterAnotherAndNamesAreUnique) {
  std::set<int> numbers;
  std::set<std::string_view> names;
  for (const StatusInfo& info : kStatuses) {
    numbers.insert(static_cast<int>(info.status));
    names.insert(info.name);
    names.insert(info.code);
    EXPECT_FALSE(info.legend.empty()) << info.name;
    EXPECT_EQ(status_info(info.status).name, info.name);
  }
  EXPECT_EQ(*numbers.begin(), 1);
  EXPECT_EQ(*numbers.rbegin(), static_cast<int>(kStatuses.size()));
  EXPECT_EQ(numbers.size(), kStatuses.size());
  EXPECT_EQ(names.size(), 2 * kStatuses.size());
}

TEST(Status, SetsAreWhatThePredicatesSay) {
  EXPECT_EQ(kPending, (StatusSet{Status::Queued, Status::Hold}));
  EXPECT_EQ(kActive,
            (StatusSet{Status::Starting, Status::Running, Status::Completing, Status::Suspended}));
  EXPECT_EQ(
      kEnded,
      (StatusSet{
          Status::Finished, Status::Failed, Status::Cancelled, Status::Timeout, Status::Lost}));
  EXPECT_EQ((StatusSet{Status::Hold, Status::Queued}.list()),
            (std::vector{Status::Queued, Status::Hold}));
  EXPECT_FALSE(counts_run_time(Status::Suspended));
}

TEST(Status, RunTimeIsWithoutSuspension) {
  const MonoTime started{1000s};
  Job job;
  job.state = Queued{};
  EXPECT_EQ(run_time_of(job, started + 5s), 0s);
  Running running;
  running.attempt.started_mono = started;
  job.state = running;
  EXPECT_EQ(run_time_of(job, started + 5s), 5s);
  running.suspended = started + 10s;
  job.state = running;
  EXPECT_EQ(run_time_of(job, started + 40s), 10s);
  running.suspended.reset();
  running.stood = 30s;
  job.state = running;
  EXPECT_EQ(run_time_of(job, started + 45s), 15s);
  // Suspended once more.
  running.suspended = started + 50s;
  job.state = running;
  EXPECT_EQ(run_time_of(job, started + 70s), 20s);
  job.state =
      Ended{.status = Status::Finished, .outcome = {.run_time = 25s}, .at = {}, .attempt = {}};
  EXPECT_EQ(run_time_of(job, started + 900s), 25s);
  // Started on another boot: its clock says nothing here.
  running = {};
  running.attempt.started_mono = started;
  job.state = running;
  EXPECT_EQ(run_time_of(job, MonoTime{5s}), 0s);
}

}  // namespace
}  // namespace gflow
