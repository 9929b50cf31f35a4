// SPDX-License-Identifier: Apache-2.0
#include "engine/job_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/machine_for_tests.h"
#include "engine/step_internal.h"

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;

Job waiting(std::uint64_t id) {
  Job job;
  job.id = JobId(id);
  job.spec.name = "run-" + std::to_string(id);
  job.spec.command = "python train.py --seed " + std::to_string(id);
  job.spec.user = {1000, "alice"};
  job.spec.request.gpus = 2;
  job.spec.request.selector = {{"zone", "a"}};
  job.spec.time_limit = 2h;
  job.spec.begin = WallTime(5min);
  job.spec.dependencies.jobs = {JobId(1), JobId(2)};
  job.spec.work_dir = "/home/alice/a directory with a long name";
  job.submitted = WallTime(1min);
  job.lived = 17ms;
  job.payload_bytes = 4711;
  return job;
}

std::vector<std::uint64_t> values(const std::vector<JobId>& ids) {
  std::vector<std::uint64_t> values;
  for (const JobId id : ids) values.push_back(id.value);
  return values;
}

TEST(JobTable, APackedJobIsTheSameWhenItIsLookedAt) {
  JobTable table;
  Job held = waiting(8);
  held.state = Held{};
  table.add(waiting(7));
  table.add(held);
  table.pack();
  EXPECT_EQ(table.packed(), 2U);
  EXPECT_EQ(*table.find(JobId(7)), waiting(7));
  EXPECT_EQ(*table.find(JobId(8)), held);
  EXPECT_EQ(table.shown(), 2U);
  table.pack();
  EXPECT_EQ(table.shown(), 0U);
  EXPECT_EQ(table.find(JobId(9)), nullptr);
}

TEST(JobTable, AGlanceTellsWhatThePackedJobTells) {
  JobTable table;
  for (const std::uint64_t id : {2U, 3U, 5U, 8U, 9U, 11U}) {
    Job job = waiting(id);
    if (id % 3 == 0) job.state = Held{};
    if (id == 5 || id == 11) job.state = Running{};  // these are not packed
    table.add(std::move(job));
  }
  table.pack();
  // Ascending with gaps, then back.
  JobTable::Reader reader(table);
  for (const std::uint64_t id : {1U, 2U, 3U, 4U, 5U, 6U, 8U, 9U, 10U, 11U, 12U, 3U, 11U, 2U}) {
    const auto seen = reader.at(JobId(id));
    const bool is_packed = id != 5 && id != 11;
    EXPECT_EQ(table.shown(), 0U) << id;
    const std::vector<JobId> ids = table.ids();
    ASSERT_EQ(seen.has_value(), std::ranges::find(ids, JobId(id)) != ids.end()) << id;
    if (!seen) continue;
    EXPECT_EQ(seen->id, JobId(id));
    EXPECT_EQ(seen->job == nullptr, is_packed) << id;
    EXPECT_EQ(seen->name, "run-" + std::to_string(id));
    EXPECT_EQ(seen->status,
              id % 3 == 0 ? Status::Hold
              : is_packed ? Status::Queued
                          : Status::Running);
    EXPECT_EQ(seen->submitted, waiting(id).submitted);
    JobSpec spec = *seen->spec;
    spec.name = waiting(id).spec.name;
    spec.command = waiting(id).spec.command;
    EXPECT_EQ(spec, waiting(id).spec) << id;
  }
}

TEST(JobTable, WhatSaysMoreStaysAsItIs) {
  std::vector<Job> jobs(8, waiting(0));
  jobs[0].state = Queued{.requeues = 1};
  jobs[1].state = Queued{.victims = {JobId(3)}};
  jobs[2].state = Held{"it failed"};
  jobs[3].state = Running{};
  jobs[4].attempts = 1;
  jobs[5].retries = 1;
  jobs[6].preemptions = 1;
  jobs[7].served = 1ms;
  JobTable table;
  for (std::uint64_t i = 0; i < jobs.size(); ++i) {
    jobs[i].id = JobId(i + 1);
    table.add(jobs[i]);
  }
  table.pack();
  EXPECT_EQ(table.packed(), 0U);
  for (const Job& job : jobs) EXPECT_EQ(table.at(job.id), job);
}

TEST(JobTable, AChangedJobIsPackedAsItIsNow) {
  JobTable table;
  Job held = waiting(1);
  held.state = Held{"it failed"};
  table.add(held);
  table.pack();
  EXPECT_EQ(table.packed(), 0U);
  table.at(JobId(1)).state = Queued{};
  table.at(JobId(1)).spec.priority = 3;
  table.pack();
  EXPECT_EQ(table.packed(), 1U);
  EXPECT_EQ(table.at(JobId(1)).spec.priority, 3);
}

TEST(JobTable, WhoLooksAtAJobSeesItChange) {
  JobTable table;
  table.add(waiting(1));
  table.pack();
  const Job* looked_at = table.find(JobId(1));
  table.at(JobId(1)).spec.priority = 3;
  EXPECT_EQ(table.find(JobId(1)), looked_at);
  EXPECT_EQ(looked_at->spec.priority, 3);
  EXPECT_EQ(table.packed(), 0U);
}

TEST(JobTable, IdsAreAscendingHoweverTheJobsAreKept) {
  JobTable table;
  for (const std::uint64_t id : {5U, 1U, 4U, 2U, 3U}) table.add(waiting(id));
  table.pack();
  (void)table.find(JobId(2));
  (void)table.find(JobId(5));
  EXPECT_EQ(values(table.ids()), (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(values(table.last_ids(2)), (std::vector<std::uint64_t>{4, 5}));
  table.erase(JobId(5));
  table.erase(JobId(3));
  EXPECT_EQ(values(table.ids()), (std::vector<std::uint64_t>{1, 2, 4}));
  EXPECT_EQ(table.size(), 3U);
  const JobTable copy = table;
  table.erase(JobId(1));
  EXPECT_EQ(copy.at(JobId(1)), waiting(1));
}

TEST(JobTable, JobsThatWaitArePackedByTheNextStep) {
  Index index;
  index.set_policy({});
  const Now now{WallTime(1000min), MonoTime(1000min)};
  const auto tell = [&](const auto& event) {
    Step step(index, now);
    step.take(event);
    (void)step.finish();
  };
  tell(event::NodesChanged{{machine_with_gpus("lab1", 1, "NVIDIA H100", Memory::gib(80))}});
  JobSpec spec;
  spec.user = {1000, "alice"};
  spec.request.gpus = 1;
  tell(event::Submit{std::vector<JobSpec>(100, spec), system_principal()});
  tell(event::Tick{});
  tell(event::Tick{});
  // One runs; the pass looks at the first of the others.
  EXPECT_GE(index.jobs.packed(), 98U);
  EXPECT_EQ(index.jobs.size(), 100U);
}

}  // namespace
}  // namespace gflow::engine
