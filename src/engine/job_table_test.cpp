// SPDX-License-Identifier: Apache-2.0
#include "engine/job_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/machine_for_tests.h"
#include "core/requests.h"
#include "engine/step_internal.h"

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;

Job waiting(std::uint64_t id) {
  Job job;
  job.id = JobId(id);
  job.spec.name = "range-" + std::to_string(id);
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
    EXPECT_EQ(seen->name(), "range-" + std::to_string(id));
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

/// Tasks of an array: but for id and name all alike.
constexpr std::array kNamings = {Naming{}, Naming{.by_id = true}, Naming{.step = 3}};

Job task(std::uint64_t id, Naming naming) {
  Job job = waiting(1);
  job.id = JobId(id);
  if (naming.by_id) job.spec.name = made_up_name(id);
  if (naming.step > 0) job.spec.name = task_name("exp", 98 + (id - 1) * naming.step);
  return job;
}
JobRange run(std::uint64_t count, Naming naming) {
  return {.first = task(1, naming), .count = count, .naming = naming};
}

TEST(JobTable, AnArrayIsTakenAsOneAndStartsFromTheFirstOn) {
  for (const Naming naming : kNamings) {
    JobTable table;
    table.add(run(10'000, naming));
    EXPECT_EQ(table.packs(), 1U);
    EXPECT_EQ(table.size(), 10'000U);
    for (std::uint64_t id = 1; id <= 100; ++id) table.at(JobId(id)).attempts = 1;
    table.pack();
    EXPECT_EQ(table.packs(), 1U);
    table.at(JobId(5'000)).attempts = 1;
    table.erase(JobId(10'000));
    table.pack();
    EXPECT_EQ(table.packs(), 2U);
    JobTable::Reader reader(table);
    for (const std::uint64_t id : {101U, 102U, 4'999U, 5'001U, 9'999U}) {
      EXPECT_EQ(*table.find(JobId(id)), task(id, naming)) << id;
      EXPECT_EQ(reader.at(JobId(id))->name(), task(id, naming).spec.name) << id;
    }
    Job fifth = task(5, naming);
    fifth.attempts = 1;
    EXPECT_EQ(*table.find(JobId(5)), fifth);
  }
}

TEST(JobTable, TasksOfAnArrayAreOne) {
  for (const Naming naming : {Naming{}, Naming{.by_id = true}}) {
    JobTable table;
    for (std::uint64_t id = 1; id <= 10'000; ++id) table.add(task(id, naming));
    table.pack();
    EXPECT_EQ(table.packs(), 1U);
    // They start from the first on, and one is put on hold and released.
    for (std::uint64_t id = 1; id <= 100; ++id) table.at(JobId(id)).attempts = 1;
    table.at(JobId(5'000)).state = Held{};
    table.pack();
    EXPECT_EQ(table.packs(), 3U);
    EXPECT_EQ(table.packed(), 9'900U);
    EXPECT_EQ(*table.find(JobId(7'777)), task(7'777, naming));
    table.at(JobId(5'000)).state = Queued{};
    table.pack();
    EXPECT_EQ(table.packs(), 1U);
  }
}

/// Whatever is done to it, it has the jobs that a map has.
RC_GTEST_PROP(JobTable, IsAsAMapOfJobs, ()) {
  enum class Do { Add, Change, ChangeBack, Erase, Pack, Look };
  JobTable table;
  std::map<JobId, Job> plain;
  const auto acts = *rc::gen::container<std::vector<std::pair<Do, int>>>(
      rc::gen::pair(rc::gen::weightedElement<Do>({{6, Do::Add},
                                                  {2, Do::Change},
                                                  {2, Do::ChangeBack},
                                                  {2, Do::Erase},
                                                  {3, Do::Pack},
                                                  {2, Do::Look}}),
                    rc::gen::inRange(1, 14)));
  const Naming naming = *rc::gen::elementOf(kNamings);
  const auto tasks = static_cast<std::uint64_t>(*rc::gen::inRange(1, 9));
  if (tasks > 1) table.add(run(tasks, naming));
  for (std::uint64_t id = 1; id <= tasks && tasks > 1; ++id) plain[JobId(id)] = task(id, naming);
  for (const auto& [what, number] : acts) {
    const JobId id(static_cast<std::uint64_t>(number));
    const bool is_there = plain.contains(id);
    if (what == Do::Add) {
      table.add(task(id.value, naming));
      plain.try_emplace(id, task(id.value, naming));
    } else if (what == Do::Change && is_there) {
      table.at(id).state = plain[id].state = Held{};
    } else if (what == Do::ChangeBack && is_there) {
      table.at(id).state = plain[id].state = Queued{};
    } else if (what == Do::Erase) {
      table.erase(id);
      plain.erase(id);
    } else if (what == Do::Pack) {
      table.pack();
    } else if (what == Do::Look) {
      RC_ASSERT((table.find(id) != nullptr) == is_there);
    }
    RC_ASSERT(table.size() == plain.size());
    std::vector<std::uint64_t> ids;
    JobTable::Reader reader(table);
    for (std::uint64_t value = 0; value <= 15; ++value) {
      const auto seen = reader.at(JobId(value));
      RC_ASSERT(seen.has_value() == plain.contains(JobId(value)));
      if (!seen) continue;
      const Job& job = plain[JobId(value)];
      ids.push_back(value);
      RC_ASSERT(seen->name() == job.spec.name);
      RC_ASSERT(seen->status == status_of(job));
    }
    RC_ASSERT(values(table.ids()) == ids);
    ids.erase(ids.begin(), ids.end() - std::min<std::ptrdiff_t>(std::ssize(ids), 3));
    RC_ASSERT(values(table.last_ids(3)) == ids);
  }
  const JobTable copy = table;
  for (const auto& [id, job] : plain) RC_ASSERT(*copy.find(id) == job);
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
