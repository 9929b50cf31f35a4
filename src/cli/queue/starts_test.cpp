// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/starts.h"

#include <gtest/gtest.h>

#include "api/job_page.h"
#include "api/waiting_jobs.h"
#include "command/times.h"

namespace gflow::cli {
namespace {

using api::StartBy;
using std::chrono::seconds;

const WallTime kAsked{seconds(1'800'000'000)};

api::JobView waits(std::uint64_t id, int priority = 10) {
  api::JobView job;
  job.id = JobId(id);
  job.status = Status::Queued;
  job.spec.priority = priority;
  return job;
}

api::QueuedJob in_queue(std::uint64_t id, std::optional<int> in_seconds) {
  api::QueuedJob job{JobId(id), {}};
  if (in_seconds) job.expected_start = {kAsked + seconds(*in_seconds), StartBy::RunTimes};
  return job;
}

std::vector<std::uint64_t> ids(const std::vector<api::JobView>& jobs) {
  std::vector<std::uint64_t> all;
  for (const api::JobView& job : jobs) all.push_back(job.id.value);
  return all;
}

/// The earliest first; of those at the same time, and of those of which nothing is known, the one
/// that stands further ahead in the queue; those that do not stand in it by priority.
TEST(Starts, PutJobsInTheirOrder) {
  const api::QueueView queue{
      {in_queue(9, 600), in_queue(8, {}), in_queue(2, 60), in_queue(1, 60), in_queue(7, {})}};
  Starts starts;
  starts.know(queue);
  const std::vector<api::JobView> jobs = {
      waits(1), waits(2), waits(3), waits(4, 20), waits(7), waits(8), waits(9)};
  EXPECT_EQ(ids(in_order_of_start(jobs, starts, queue)),
            (std::vector<std::uint64_t>{2, 1, 9, 8, 7, 4, 3}));
}

TEST(Starts, KnowTheBeginOfOneThatWaitsForNothingElse) {
  api::JobView begins = waits(5);
  api::BlockerView& begin = begins.blockers.emplace_back();
  begin.kind = BlockerKind::BeginTime;
  begin.at = kAsked + seconds(30);
  Starts starts;
  starts.look_at(begins, kAsked);
  starts.look_at(waits(6), kAsked);
  ASSERT_TRUE(starts.of(JobId(5)));
  EXPECT_EQ(*starts.of(JobId(5)), (api::ExpectedStart{*begin.at, StartBy::BeginTime}));
  EXPECT_FALSE(starts.of(JobId(6)));
  EXPECT_EQ(ids(in_order_of_start({waits(6), begins}, starts, {})),
            (std::vector<std::uint64_t>{5, 6}));
}

TEST(Starts, AreColumnsOfTheirListing) {
  Starts starts;
  const std::vector<Field> fields = start_fields(starts);
  starts.know({{in_queue(1, 60)}});
  const auto chosen = choose_fields("jobid,start_time,start_by", fields);
  ASSERT_TRUE(chosen) << chosen.error().message;
  const auto texts = [&](std::uint64_t id) {
    std::vector<std::string> all;
    for (const Cell& cell : row_of(*chosen, waits(id))) all.push_back(cell.text);
    return all;
  };
  EXPECT_EQ(texts(1),
            (std::vector<std::string>{"1", local_text(kAsked + seconds(60)), "run_times"}));
  EXPECT_EQ(texts(2), (std::vector<std::string>{"2", "-", "-"}));
  EXPECT_TRUE(choose_fields(kDefaultStartFields, fields));
  EXPECT_EQ(choose_fields("START").error().code, Code::Usage) << "no other listing has it";
  EXPECT_TRUE(api::check_job_fields(needs_of(*chosen)));
}

TEST(Starts, StandBesideTheFieldsOfTheirJobs) {
  const std::string one = api::write(api::WaitingJob{waits(3), {}});
  EXPECT_TRUE(one.starts_with(R"({"apiVersion":"gflow/v1","kind":"WaitingJob","id":3,)")) << one;
  EXPECT_TRUE(one.ends_with(R"("expected_start":null})")) << one;
  const std::string all = api::write_waiting(
      {{waits(3), api::ExpectedStart{WallTime{seconds(1'800'000'000)}, StartBy::NotBefore}}});
  EXPECT_TRUE(all.starts_with(R"({"apiVersion":"gflow/v1","kind":"WaitingJobs","jobs":[{"id":3,)"))
      << all;
  EXPECT_TRUE(
      all.ends_with(R"("expected_start":{"at":"2027-01-15T08:00:00.000Z","by":"not_before"}}]})"))
      << all;
}

}  // namespace
}  // namespace gflow::cli
