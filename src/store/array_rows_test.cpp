// SPDX-License-Identifier: Apache-2.0
// Jobs alike are one row until something happens to one of them: whatever happens in whatever
// order, the store has each job as it was last saved, and what it runs until it has ended.
#include "store/array_rows.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

#include "os/file.h"
#include "store/salvage.h"
#include "store/samples.h"

namespace gflow::store {
namespace {

using namespace samples;

std::map<JobId, Job> all_of(Store& store) {
  std::map<JobId, Job> all;
  const Loaded loaded = store.load().value();
  for (const Job& job : loaded.jobs) all.emplace(job.id, job);
  for (const JobRun& run : loaded.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) all.emplace(run.id(i), run.at(i));
  }
  return all;
}

/// The arrays, in the store and as a map.
struct Arrays {
  Directory directory;
  std::string path = directory.file("gflow.db");
  std::unique_ptr<Store> store = open(path);
  std::vector<JobRun> runs = samples::runs();
  std::map<JobId, Job> jobs{};
  Payload what = payload();

  Arrays() {
    for (JobRun& run : runs) {
      run.count = std::min<std::uint64_t>(run.count, 7);
      for (std::uint64_t i = 0; i < run.count; ++i) jobs[run.id(i)] = run.at(i);
    }
    Batch batch;
    batch.runs = runs;
    batch.arrays = arrays_of(runs, what);
    EXPECT_TRUE(store->commit(batch));
  }

  void save(const std::vector<Job>& changed) {
    Batch batch;
    for (const Job& job : changed) {
      batch.saves.push_back(&job);
      jobs[job.id] = job;
    }
    EXPECT_TRUE(store->commit(batch));
  }
  void forget(JobId id) {
    EXPECT_TRUE(store->commit({.forgets = {id}}));
    jobs.erase(id);
  }
  [[nodiscard]] Job ended(JobId id) const {
    Job job = jobs.at(id);
    job.state = Ended{Status::Finished, outcome(), at(5), attempt()};
    return job;
  }
  void reopen() {
    store.reset();
    store = open(path);
  }
  [[nodiscard]] int rows(const std::string& table) {
    store.reset();
    const int count = SQLite::Database(path).execAndGet("SELECT count(*) FROM " + table).getInt();
    store = open(path);
    return count;
  }
};

TEST(Arrays, AreARowUntilOneOfThemStarts) {
  Arrays arrays;
  EXPECT_EQ(arrays.rows("jobs"), 3);
  EXPECT_EQ(arrays.rows("shared_payloads"), 1);
  Job third = arrays.jobs.at(arrays.runs[0].id(2));
  third.state = Starting{attempt(), {}};
  arrays.save({third});
  EXPECT_EQ(arrays.rows("jobs"), 5) << "those before it, it, those behind it";
  EXPECT_EQ(all_of(*arrays.store), arrays.jobs);
}

TEST(Arrays, WhatTheyRunGoesWithTheLastOfThem) {
  Arrays arrays;
  for (const JobRun& run : arrays.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const std::uint64_t task = i % 2 == 0 ? i / 2 : run.count - 1 - i / 2;
      EXPECT_EQ(arrays.store->payload(run.id(task)).value(), payload_of(run, task));
      arrays.save({arrays.ended(run.id(task))});
    }
    EXPECT_FALSE(arrays.store->payload(run.id(0)));
  }
  EXPECT_EQ(arrays.rows("arrays"), 0);
  EXPECT_EQ(arrays.rows("shared_payloads"), 0);
}

TEST(Arrays, AreSavedFromADatabaseThatWasLost) {
  Arrays arrays;
  arrays.save({arrays.ended(arrays.runs[0].id(3))});
  arrays.store.reset();
  const auto salvage = Salvage::open(arrays.path, arrays.directory.file("copies")).value();
  for (const auto& [id, job] : arrays.jobs) EXPECT_EQ(salvage->job(id).value(), job) << id.value;
  for (const JobRun& run : arrays.runs) {
    EXPECT_EQ(salvage->payload(run.last()).value(), payload_of(run, run.count - 1));
  }
  EXPECT_FALSE(salvage->job(JobId(1)).value());
  EXPECT_FALSE(salvage->job(JobId(arrays.runs[0].last().value + 1)).value());
  arrays.store = open(arrays.path);
}

TEST(Arrays, RowsThatOverlapAreDamage) {
  Arrays arrays;
  arrays.store.reset();
  ASSERT_TRUE(os::remove_tree(arrays.path + ".ids"));  // by which it would be known as changed
  SQLite::Database(arrays.path, SQLite::OPEN_READWRITE)
      .exec("UPDATE jobs SET run_first = 1 WHERE run_first IS NOT NULL");
  arrays.store = open(arrays.path);
  const auto loaded = arrays.store->load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::Damaged) << loaded.error().message;
}

RC_GTEST_PROP(Arrays, AreAsEachJobWasSavedLast, ()) {
  enum class Do { Hold, End, Forget, Reopen };
  Arrays arrays;
  const auto acts = *rc::gen::container<std::vector<std::pair<Do, std::vector<int>>>>(rc::gen::pair(
      rc::gen::weightedElement<Do>({{5, Do::Hold}, {4, Do::End}, {2, Do::Forget}, {1, Do::Reopen}}),
      rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 20))));
  for (const auto& [what, which] : acts) {
    std::map<JobId, Job> changed;
    for (const int number : which) {
      if (arrays.jobs.empty()) break;
      const auto at =
          std::next(arrays.jobs.begin(), number % static_cast<std::ptrdiff_t>(arrays.jobs.size()));
      const bool is_over = is_ended(at->second);
      if (what == Do::Forget && is_over) {
        arrays.forget(at->first);
        continue;
      }
      if (is_over) continue;
      Job& job = changed[at->first];
      if (what == Do::End) {
        job = arrays.ended(at->first);
      } else {
        job = at->second;
        job.state = Held{"for a reason"};
      }
    }
    if (what == Do::Reopen) arrays.reopen();
    std::vector<Job> saved;
    for (const auto& [id, job] : changed) saved.push_back(job);
    if (what == Do::Hold || what == Do::End) arrays.save(saved);
    RC_ASSERT(all_of(*arrays.store) == arrays.jobs);
    for (const JobRun& run : arrays.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        const auto job = arrays.jobs.find(run.id(i));
        if (job == arrays.jobs.end() || is_ended(job->second)) continue;
        RC_ASSERT(arrays.store->payload(job->first).value() == payload_of(run, i));
      }
    }
  }
}

}  // namespace
}  // namespace gflow::store
