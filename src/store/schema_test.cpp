// SPDX-License-Identifier: Apache-2.0
#include "store/schema.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "os/file.h"
#include "store/samples.h"

namespace gflow::store {
namespace {

using namespace samples;

constexpr const char* kKey = "2f0c3c5e";
constexpr const char* kDigest = "2a-0123456789abcdef";
constexpr WallTime kForgotten{std::chrono::milliseconds(1'700'000'000'123)};
constexpr Memory kGoldenMost = Memory::mib(1);

/// What the golden database of a schema holds. Never changed: a new schema gets a new one.
void write_golden(const std::string& path) {
  auto store = open(path);
  const std::vector<Job> jobs = every_state();
  const Payload what = payload();
  Batch batch = batch_of(jobs, what);
  batch.ranges = ranges();
  batch.arrays = arrays_of(batch.ranges, what);
  batch.submissions = {{1000, kKey, {JobId(1), JobId(2), JobId(4)}, kDigest}};
  batch.drains = drains();
  batch.unhealthy = unhealthy();
  batch.slices = slices();
  batch.tokens = tokens();
  batch.forgotten = kForgotten;
  ASSERT_TRUE(store->commit(batch));
}

std::string golden(int schema) {
  return GFLOW_SOURCE_DIR "/tests/upgrade/schema_" + std::to_string(schema) + ".db";
}

/// A database of schema 1 to upgrade.
void copy_golden(const std::string& path) {
  const auto content = os::read_file(golden(1), kGoldenMost);
  ASSERT_TRUE(content && os::write_file(path, *content));
}

int user_version(const std::string& path) {
  return SQLite::Database(path, SQLite::OPEN_READONLY).execAndGet("PRAGMA user_version").getInt();
}

SQLite::Database writable(const std::string& path) { return {path, SQLite::OPEN_READWRITE}; }

std::optional<WallTime> first_end_of(const std::vector<Job>& jobs) {
  std::optional<WallTime> first;
  for (const Job& job : jobs) {
    const auto* ended = std::get_if<Ended>(&job.state);
    if (ended != nullptr) first = std::min(first.value_or(ended->at), ended->at);
  }
  return first;
}

TEST(SchemaTest, DatabasesOfEverySchemaOpen) {
  const Directory directory;
  for (const Migration& migration : migrations()) {
    // GFLOW_BLESS=1 makes the file of a new schema.
    if (std::getenv("GFLOW_BLESS") != nullptr && !os::exists(golden(migration.number))) {
      write_golden(directory.file("new.db"));
      const std::string made = os::read_file(directory.file("new.db"), kGoldenMost).value();
      ASSERT_TRUE(os::write_file(golden(migration.number), made, 0644));
    }
    const auto content = os::read_file(golden(migration.number), kGoldenMost);
    ASSERT_TRUE(content) << content.error().message;
    const std::string path = directory.file("old.db");
    ASSERT_TRUE(os::write_file(path, *content));
    forget_run(path);
    ASSERT_EQ(user_version(path), migration.number);
    {
      auto store = open(path);
      const std::vector<Job> jobs = every_state(migration.number);
      EXPECT_EQ(jobs_of(*store), jobs);
      for (const Job& job : jobs) {
        const auto found = store->payload(job.id);
        ASSERT_EQ(found.has_value(), !is_ended(job)) << job.id.value;
        if (found) {
          EXPECT_EQ(*found, payload());
        }
      }
      const auto submission = store->find_submission(1000, kKey, std::chrono::seconds(60)).value();
      ASSERT_TRUE(submission);
      EXPECT_EQ(submission->jobs, (std::vector{JobId(1), JobId(2), JobId(4)}));
      EXPECT_EQ(submission->digest, migration.number < 6 ? "" : kDigest);
      const bool has_ranges = migration.number >= 16;
      EXPECT_EQ(store->load().value().ranges, has_ranges ? ranges() : std::vector<JobRange>());
      for (const JobRange& range : has_ranges ? ranges() : std::vector<JobRange>()) {
        const auto found = store->payload(range.last());
        ASSERT_TRUE(found) << range.last().value;
        EXPECT_EQ(*found, payload_of(range, range.count - 1));
      }
      EXPECT_EQ(store->load().value().next_id, JobId(has_ranges ? 2'001'503 : 1'000'001));
      EXPECT_EQ(store->load().value().drains,
                migration.number < 2 ? std::vector<Drain>() : drains(migration.number));
      EXPECT_EQ(store->load().value().unhealthy,
                migration.number < 7 ? std::vector<NodeHealth>() : unhealthy());
      EXPECT_EQ(store->load().value().tokens,
                migration.number < 13 ? std::vector<Token>() : tokens());
      EXPECT_EQ(store->load().value().slices,
                migration.number < 22 ? std::vector<MadeSlice>() : slices());
      EXPECT_EQ(store->load().value().forgotten,
                migration.number < 19 ? first_end_of(jobs) : kForgotten);
      // Whatever it came from, it takes what the newest schema knows.
      const std::vector<Job> newest = every_state();
      Batch batch = batch_of(newest, payload());
      batch.payloads.clear();
      ASSERT_TRUE(store->commit(batch));
      EXPECT_EQ(jobs_of(*store), every_state());
    }
    EXPECT_EQ(user_version(path), migrations().back().number);
  }
}

TEST(SchemaTest, NumbersGoUpByOne) {
  int number = 0;
  for (const Migration& migration : migrations()) EXPECT_EQ(migration.number, ++number);
}

TEST(SchemaTest, AnUpgradeKeepsACopyOfWhatWas) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  copy_golden(path);
  std::vector<Migration> known = {
      migrations().front(),
      {2, "ALTER TABLE jobs ADD COLUMN colour TEXT;"},
      {3, "UPDATE jobs SET colour = 'blue'; CREATE TABLE shapes (id);"}};
  const int newest = migrations().back().number + 1;
  while (known.back().number < newest) known.push_back({known.back().number + 1, ""});
  {
    auto database = writable(path);
    ASSERT_TRUE(upgrade(database, path, known));
    EXPECT_EQ(database.execAndGet("SELECT DISTINCT colour FROM jobs").getString(), "blue");
    // Nothing more to do, and no second copy.
    ASSERT_TRUE(upgrade(database, path, known));
  }
  EXPECT_EQ(user_version(path), newest);
  const std::string backup = backup_path(path, 1);
  EXPECT_EQ(user_version(backup), 1);
  EXPECT_FALSE(os::exists(backup_path(path, newest)));
  struct stat facts{};
  ASSERT_EQ(::stat(backup.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  // A schema from the future: refused, with the way back, and that works.
  writable(path).exec("PRAGMA user_version = 99");
  const auto refused = Store::open(path);
  ASSERT_FALSE(refused);
  const std::string command = "mv '" + backup + "' '" + path + "' && rm -f '" + path + "-wal'";
  ASSERT_NE(refused.error().message.find(command), std::string::npos) << refused.error().message;
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(jobs_of(*open(path)), every_state(1));
}

TEST(SchemaTest, AnUpgradeThatFailsChangesNothing) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  copy_golden(path);
  const Migration known[] = {migrations().front(),
                             {2, "DELETE FROM jobs; CREATE TABLE shapes (id);"},
                             {3, "ALTER TABLE nothing ADD COLUMN x"}};
  {
    auto database = writable(path);
    EXPECT_THROW((void)upgrade(database, path, known), SQLite::Exception);
    // Again: what the first try left behind is not in the way.
    EXPECT_THROW((void)upgrade(database, path, known), SQLite::Exception);
  }
  EXPECT_EQ(jobs_of(*open(path)), every_state(1));
}

// Nothing read them, and each change of a job wrote one.
TEST(SchemaTest, AnUpgradeDropsTheEventsOfOld) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  copy_golden(path);
  auto database = writable(path);
  ASSERT_TRUE(upgrade(database, path, migrations()));
  EXPECT_EQ(
      database.execAndGet("SELECT count(*) FROM pragma_table_info('events') WHERE name = 'seq'")
          .getInt(),
      0);
}

}  // namespace
}  // namespace gflow::store
