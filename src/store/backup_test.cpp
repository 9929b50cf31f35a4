// SPDX-License-Identifier: Apache-2.0
#include "store/backup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "os/file.h"
#include "store/salvage.h"
#include "store/samples.h"

namespace gflow::store {
namespace {

using namespace samples;

TEST(BackupTest, NamesTellTheTime) {
  const WallTime time = parse_rfc3339("2026-11-22T01:30:05.250Z").value();
  EXPECT_EQ(file_stamp(time), "20261122T013005Z");
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  for (const char* name : {".backup-20261122T013005Z",
                           ".backup-20251122T013005Z",
                           ".backup-part",
                           ".backup-20261322T013005Z",
                           ".backup-20261122T013005Z-wal",
                           ""}) {
    ASSERT_TRUE(os::write_file(path + name, ""));
  }
  const auto files = list_backups(path).value();
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].path, path + ".backup-20251122T013005Z");
  EXPECT_EQ(files[1].taken, parse_rfc3339("2026-11-22T01:30:05Z").value());
}

/// Copied a page at a time with a commit between any two: the copy holds them all.
TEST(BackupTest, HoldsWhatIsCommittedWhileItIsMade) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  auto store = open(path);
  std::vector<Job> jobs;
  for (std::uint64_t id = 1; id <= 200; ++id) jobs.push_back(queued(id));
  ASSERT_TRUE(store->commit(batch_of(jobs, payload())));
  {
    auto backup = store->back_up().value();
    std::uint64_t next = 201;
    while (!backup->copy(1).value()) {
      jobs.push_back(queued(next++));
      jobs[next % 200].spec.name = "changed";
      const Batch batch{.saves = {&jobs[next % 200], &jobs.back()}};
      ASSERT_TRUE(store->commit(batch));
    }
    ASSERT_GT(next, 205U);
  }
  ASSERT_TRUE(publish_backup(path, at(0), 3));
  EXPECT_FALSE(os::exists(backup_part(path)));
  struct stat facts{};
  ASSERT_EQ(::stat(backup_name(path, at(0)).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  ASSERT_TRUE(os::make_directories(directory.file("work")));
  auto copy = Salvage::open(backup_name(path, at(0)), directory.file("work")).value();
  EXPECT_TRUE(copy->is_whole());
  EXPECT_EQ(copy->commits(), store->commits());
  for (const Job& job : jobs) EXPECT_EQ(copy->job(job.id).value(), job);
  EXPECT_EQ(copy->payload(JobId(7)).value(), payload());
}

TEST(BackupTest, TheOldestGo) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  const auto make = [&](int second) {
    ASSERT_TRUE(os::write_file(backup_part(path), std::to_string(second)));
    ASSERT_TRUE(publish_backup(path, at(second), 2));
  };
  const auto there = [&] {
    std::string seconds;
    const auto backups = list_backups(path).value();
    for (const BackupFile& file : backups) {
      seconds += os::read_file(file.path).value() + " ";
    }
    return seconds;
  };
  for (const int second : {10, 20, 30}) make(second);
  EXPECT_EQ(there(), "20 30 ");
  // The clock was set back: what was just made stays.
  make(5);
  EXPECT_EQ(there(), "5 30 ");
}

}  // namespace
}  // namespace gflow::store
