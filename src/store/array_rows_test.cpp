// SPDX-License-Identifier: Apache-2.0
// Jobs alike are one row until something happens to one of them: whatever happens in whatever
// order, the store has each job as it was last saved, and what it ranges until it has ended.
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
  for (const JobRange& range : loaded.ranges) {
    for (std::uint64_t i = 0; i < range.count; ++i) all.emplace(range.id(i), range.at(i));
  }
  return all;
}

/// The arrays, in the store and as a map.
struct Arrays {
  Directory directory;
  std::string path = directory.file("gflow.db");
  std::unique_ptr<Store> store = open(path);
  std::vector<JobRange> ranges = samples::ranges();
  std::map<JobId, Job> jobs{};
  Payload what = payload();

  Arrays() {
    for (JobRange& range : ranges) {
      range.count = std::min<std::uint64_t>(range.count, 7);
      for (std::uint64_t i = 0; i < range.count; ++i) jobs[range.id(i)] = range.at(i);
    }
    Batch batch;
    batch.ranges = ranges;
    batch.arrays = arrays_of(ranges, what);
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
  Job third = arrays.jobs.at(arrays.ranges[0].id(2));
  third.state = Starting{attempt(), {}};
  arrays.save({third});
  EXPECT_EQ(arrays.rows("jobs"), 5) << "those before it, it, those behind it";
  EXPECT_EQ(all_of(*arrays.store), arrays.jobs);
}

TEST(Arrays, WhatTheyRunGoesWithTheLastOfThem) {
  Arrays arrays;
  for (const JobRange& range : arrays.ranges) {
    for (std::uint64_t i = 0; i < range.count; ++i) {
      const std::uint64_t task = i % 2 == 0 ? i / 2 : range.count - 1 - i / 2;
      EXPECT_EQ(arrays.store->payload(range.id(task)).value(), payload_of(range, task));
      arrays.save({arrays.ended(range.id(task))});
      EXPECT_FALSE(arrays.store->payload(range.id(task)));
    }
    EXPECT_FALSE(arrays.store->payload(range.id(0)));
  }
  EXPECT_EQ(arrays.rows("arrays"), 0);
  EXPECT_EQ(arrays.rows("shared_payloads"), 0);
}

/// On a full disk a job may have ended and be forgotten before anything of that could be written.
TEST(Arrays, OneThatIsForgottenBeforeItsEndWasWrittenTakesNoOtherWithIt) {
  for (const std::uint64_t task : {0U, 3U, 6U}) {
    Arrays arrays;
    arrays.forget(arrays.ranges[0].id(task));
    EXPECT_EQ(all_of(*arrays.store), arrays.jobs) << task;
  }
  Arrays arrays;
  for (const JobRange& range : arrays.ranges) {
    for (std::uint64_t i = 0; i < range.count; ++i) arrays.forget(range.id(i));
  }
  EXPECT_EQ(arrays.rows("jobs"), 0);
  EXPECT_EQ(arrays.rows("arrays"), 0);
  EXPECT_EQ(arrays.rows("shared_payloads"), 0);
}

TEST(Arrays, AreSavedFromADatabaseThatWasLost) {
  Arrays arrays;
  arrays.save({arrays.ended(arrays.ranges[0].id(3))});
  arrays.store.reset();
  const auto salvage = Salvage::open(arrays.path, arrays.directory.file("copies")).value();
  for (const auto& [id, job] : arrays.jobs) EXPECT_EQ(salvage->job(id).value(), job) << id.value;
  for (const JobRange& range : arrays.ranges) {
    EXPECT_EQ(salvage->payload(range.last()).value(), payload_of(range, range.count - 1));
  }
  EXPECT_FALSE(salvage->job(JobId(1)).value());
  EXPECT_FALSE(salvage->job(JobId(arrays.ranges[0].last().value + 1)).value());
  arrays.store = open(arrays.path);
}

TEST(Arrays, RowsThatOverlapAreDamage) {
  Arrays arrays;
  arrays.store.reset();
  forget_run(arrays.path);  // by which it would be known as changed
  SQLite::Database(arrays.path, SQLite::OPEN_READWRITE)
      .exec("UPDATE jobs SET range_first = 1 WHERE range_first IS NOT NULL");
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
      if (what == Do::Forget) {
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
    for (const JobRange& range : arrays.ranges) {
      for (std::uint64_t i = 0; i < range.count; ++i) {
        const auto job = arrays.jobs.find(range.id(i));
        if (job == arrays.jobs.end() || is_ended(job->second)) continue;
        RC_ASSERT(arrays.store->payload(job->first).value() == payload_of(range, i));
      }
    }
  }
}

}  // namespace
}  // namespace gflow::store
