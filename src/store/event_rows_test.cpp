// SPDX-License-Identifier: Apache-2.0
#include "store/event_rows.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <string>

#include "store/samples.h"
#include "store/store.h"

namespace gflow::store {
namespace {

using std::chrono::hours;
constexpr WallTime kNow{std::chrono::milliseconds(1'772'366'400'000)};

JobEvent some_event(std::uint64_t job) {
  return {.what = Happening::Ended,
          .job = JobId(job),
          .user = {1000, "alice"},
          .name = std::string("a \xff name\n\0", 10),
          .allocation = true,
          .status = Status::Failed,
          .attempt = 2,
          .node = "lab1",
          .gpus = {0, 1, 2, 7},
          .reason = EndReason::Signalled,
          .exit_code = -1,
          .signal = 9};
}

struct Events : testing::Test {
  std::unique_ptr<Store> store = Store::open(":memory:").value();

  void commit(std::size_t count, WallTime at) {
    JobEvents events{store->next_event(at), at, {}};
    for (std::size_t i = 0; i < count; ++i) events.events.push_back(some_event(i + 1));
    Batch batch;
    batch.events = &events;
    ASSERT_TRUE(store->commit(batch));
  }
  std::vector<JobEvents> load() { return store->events().value(); }
  std::size_t count() {
    std::size_t all = 0;
    for (const JobEvents& row : load()) all += row.events.size();
    return all;
  }
};

TEST_F(Events, AreReadAsTheyWereWritten) {
  commit(1, kNow);
  commit(2, kNow + hours(1));
  const auto rows = load();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], (JobEvents{1'772'366'400'000'000, kNow, {some_event(1)}}));
  EXPECT_EQ(rows[1],
            (JobEvents{1'772'366'400'000'001, kNow + hours(1), {some_event(1), some_event(2)}}));
  EXPECT_EQ(store->next_event(kNow + hours(9)), 1'772'366'400'000'003U)
      << "whatever the clock says";
}

TEST_F(Events, AreNumberedTheSameAfterARestartBeforeTheFirst) {
  const samples::Directory directory;
  const std::string path = directory.file("gflow.db");
  store = Store::open(path).value();
  const std::uint64_t first = store->next_event(kNow);
  for (int i = 1; i < 3; ++i) {
    store.reset();
    store = Store::open(path).value();
    EXPECT_EQ(store->next_event(kNow + hours(i)), first);
    EXPECT_EQ(count(), 0U);
  }
  commit(2, kNow + hours(3));
  store.reset();
  store = Store::open(path).value();
  EXPECT_EQ(load(),
            (std::vector{JobEvents{first, kNow + hours(3), {some_event(1), some_event(2)}}}));
}

TEST_F(Events, OfJobsAlikeAreOneEntryWithANumberForEach) {
  JobEvents events{store->next_event(kNow), kNow, {some_event(1), some_event(2), some_event(12)}};
  events.events[1].count = 10;
  events.events[1].naming = {.step = 4'000'000'000};
  Batch batch;
  batch.events = &events;
  ASSERT_TRUE(store->commit(batch));
  EXPECT_EQ(load(), std::vector{events});
  EXPECT_EQ(store->next_event(kNow), events.first + 12);
  events.first += 12;
  events.events = {some_event(7)};
  events.events[0].count = 2;
  events.events[0].naming.by_id = true;
  ASSERT_TRUE(store->commit(batch));
  EXPECT_EQ(load().back(), events);
}

TEST_F(Events, OfALargeCommitAreInSeveralRows) {
  commit(2 * kMaxEventsTogether + 1, kNow);
  const auto rows = load();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2].first, rows[0].first + 2 * kMaxEventsTogether);
  EXPECT_EQ(rows[2].events.front(), some_event(2 * kMaxEventsTogether + 1));
}

TEST_F(Events, GoWhenTheyAreTooMany) {
  for (int i = 0; i < 400; ++i) commit(kMaxEventsTogether, kNow);
  EXPECT_LE(count(), kMaxEventsKept);
  EXPECT_GT(count(), kMaxEventsKept - kMaxEventsTogether);
}

TEST_F(Events, GoWhenTheyAreOldAFewAtATime) {
  for (int i = 0; i < 20; ++i) commit(1, kNow);
  const WallTime later = kNow + kEventsKeptFor + hours(1);
  commit(1, later);
  EXPECT_EQ(count(), 13U);
  commit(1, later);
  commit(1, later);
  EXPECT_EQ(count(), 3U);
  commit(1, later + hours(1000));
  EXPECT_EQ(count(), 1U) << "the newest stays: its number is not given again";
}

TEST_F(Events, AreNumberedOnAfterADayWithoutAny) {
  for (int i = 0; i < 20; ++i) commit(1, kNow);
  const std::uint64_t next = store->next_event(kNow);
  // What is written without telling of a job takes old rows with it, too.
  const WallTime later = kNow + 3 * kEventsKeptFor;
  for (int i = 0; i < 5; ++i) {
    const JobEvents none{store->next_event(later), later, {}};
    Batch batch;
    batch.next_id = JobId(static_cast<std::uint64_t>(i) + 1);
    batch.events = &none;
    ASSERT_TRUE(store->commit(batch));
  }
  EXPECT_EQ(count(), 1U);
  EXPECT_EQ(store->next_event(later), next);
}

/// What is read of a row whose numbers were overwritten with as many characters.
bool is_read_with(const std::string& numbers) {
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  database.exec(
      "CREATE TABLE events (first INTEGER PRIMARY KEY, at_ms INTEGER, count INTEGER, list BLOB)");
  EventRows rows(database);
  rows.add({1, kNow, {some_event(1)}});
  SQLite::Statement overwrite(database,
                              "UPDATE events SET list = CAST(replace(list, ?, ?) AS BLOB)");
  overwrite.bind(1, "11 1 1000 1 7 2 2 -1 9");
  overwrite.bind(2, numbers);
  EXPECT_EQ(overwrite.exec(), 1);
  try {
    return rows.load().size() == 1;
  } catch (const SQLite::Exception&) {
    return false;
  }
}

TEST(EventRow, WithNumbersThatAreNoneIsRefused) {
  EXPECT_TRUE(is_read_with("11 1 1000 1 7 2 2 -1 9"));
  EXPECT_TRUE(is_read_with("11 1 1001 0 7 2 2 -1 8"));
  for (const char* numbers : {"11 1 1000 2 7 2 2 -1 9",  // a truth that is 2
                              "11 -11000 1 7 2 2 -1 9",  // a job below none, a number too few
                              "11 1 1000 1 7 2 2 -19 ",  // a number too few, one that is empty
                              "11 1 1000 1 7 2 2 9 9 ",  // a tenth
                              "999 1 100 1 7 2 2 -1 9",  // a happening above the 255th
                              "11 1 10-0 1 7 2 2 -1 9"}) {
    EXPECT_FALSE(is_read_with(numbers)) << numbers;
  }
}

}  // namespace
}  // namespace gflow::store
