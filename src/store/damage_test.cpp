// SPDX-License-Identifier: Apache-2.0
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/file.h"
#include "store/samples.h"

/// What happens to a database behind gflow's back is noticed by the next open().
namespace gflow::store {
namespace {

using namespace samples;
namespace fs = std::filesystem;

enum class End { InOrder, Killed };

/// Five batches of a job each, by a process that ends in order or as kill -9 ends it.
void commit_five(const std::string& path, End end) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = Store::open(path);
    for (std::uint64_t id = 1; store && id <= 5; ++id) {
      const Payload what = payload();
      const std::vector<Job> jobs = {queued(id)};
      if (!(*store)->commit(batch_of(jobs, what))) ::_exit(1);
    }
    if (end == End::InOrder) store->reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

void overwrite(const std::string& path, std::streamoff at, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file << bytes;
  ASSERT_TRUE(file.good());
}

std::string read(const std::string& path) { return os::read_file(path).value(); }

std::string refusal(const std::string& path) {
  const auto store = Store::open(path);
  return store ? "opened" : store.error().message;
}

TEST(DamageTest, IsNoticedAndNothingIsChanged) {
  struct Case {
    const char* what;
    End end;
    void (*damage)(const std::string& path);
    const char* says;
  };
  const Case cases[] = {
      {"a byte of the WAL",
       End::Killed,
       // In the fourth from the end of its frames of 4,120 bytes.
       [](const std::string& path) {
         const auto size = static_cast<std::streamoff>(fs::file_size(path + "-wal"));
         overwrite(path + "-wal", size - 4 * 4120 + 200, "\x5a");
       },
       "transactions are missing, and with them job"},
      {"the WAL",
       End::Killed,
       [](const std::string& path) { fs::remove(path + "-wal"); },
       "jobs 1-5"},
      {"the WAL cut short",
       End::Killed,
       [](const std::string& path) { fs::resize_file(path + "-wal", 32); },
       "jobs 1-5"},
      {"the last frame of the WAL",
       End::Killed,
       [](const std::string& path) {
         fs::resize_file(path + "-wal", fs::file_size(path + "-wal") - 1);
       },
       "the last 1 of 5 transactions are missing, and with them job 5)"},
      {"the database after a kill",
       End::Killed,
       [](const std::string& path) {
         fs::remove(path);
         fs::remove(path + "-wal");
       },
       "is missing or empty, and with it jobs 1-5: "},
      {"the database",
       End::InOrder,
       [](const std::string& path) { fs::remove(path); },
       "is missing or empty, and with it jobs 1-5: "},
      {"an empty file instead",
       End::InOrder,
       [](const std::string& path) { fs::resize_file(path, 0); },
       "is missing or empty, and with it jobs 1-5: "},
      {"the ids after a kill",
       End::Killed,
       [](const std::string& path) { fs::remove(path + ".ids"); },
       "/gflow.db.ids', by which it is known"},
      {"the ids",
       End::InOrder,
       [](const std::string& path) { fs::remove(path + ".ids"); },
       "/gflow.db.ids', by which it is known"},
      {"the ids cut short",
       End::InOrder,
       [](const std::string& path) { fs::resize_file(path + ".ids", 40); },
       "/gflow.db.ids', by which it is known"},
      {"what the ids begin with",
       End::InOrder,
       [](const std::string& path) { overwrite(path + ".ids", 0, "G"); },
       "/gflow.db.ids', by which it is known"},
      {"a page",
       End::InOrder,
       [](const std::string& path) { overwrite(path, 3 * 4096, std::string(4096, '\x5a')); },
       "is damaged ("},
      {"the first page",
       End::InOrder,
       [](const std::string& path) { overwrite(path, 0, std::string(4096, '\x5a')); },
       "gflow doctor --recover"},
      {"a bit of a job's name",
       End::InOrder,
       [](const std::string& path) {
         const std::size_t at = read(path).find("payload");
         overwrite(path, static_cast<std::streamoff>(at == std::string::npos ? 9000 : at), "P");
       },
       "changed after gflowd had closed it"},
  };
  for (const Case& c : cases) {
    const Directory directory;
    const std::string path = directory.file("gflow.db");
    commit_five(path, c.end);
    c.damage(path);
    const bool there = os::exists(path);
    const bool has_ids = os::exists(path + ".ids");
    const std::string before = there ? read(path) : "";
    const std::string wal = os::exists(path + "-wal") ? read(path + "-wal") : "";
    const std::string said = refusal(path);
    EXPECT_NE(said.find(c.says), std::string::npos) << c.what << ": " << said;
    EXPECT_NE(said.find("gflow doctor --recover"), std::string::npos) << c.what << ": " << said;
    EXPECT_EQ(os::exists(path), there) << c.what;
    EXPECT_EQ(os::exists(path + ".ids"), has_ids) << c.what;
    if (there) {
      EXPECT_TRUE(read(path) == before) << c.what << ": the database was changed";
    }
    if (!wal.empty()) {
      EXPECT_TRUE(read(path + "-wal") == wal) << c.what << ": the WAL was changed";
    }
    // Nor does it heal by being tried again.
    EXPECT_EQ(refusal(path), said) << c.what;
  }
}

TEST(DamageTest, ABackupPutInPlaceIsNotTakenForTheWhole) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  {
    (void)open(path);
  }
  const std::string backup = read(path);
  commit_five(path, End::InOrder);
  ASSERT_TRUE(os::write_file(path, backup));
  EXPECT_NE(refusal(path).find("changed after gflowd had closed it"), std::string::npos);
}

TEST(DamageTest, WhatIsWholeOpens) {
  for (const End end : {End::InOrder, End::Killed}) {
    const Directory directory;
    const std::string path = directory.file("gflow.db");
    commit_five(path, end);
    EXPECT_EQ(jobs_of(*open(path)).size(), 5U);
    EXPECT_EQ(jobs_of(*open(path)).size(), 5U);
  }
}

// Killed between the giving out of an id and the commit: the id is lost, and no job with it.
TEST(DamageTest, AnIdThatWasNeverCommittedIsNotMissed) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  commit_five(path, End::Killed);
  std::string line = read(path + ".ids");
  ASSERT_TRUE(line.starts_with("gflow-ids-2 6 "));
  line[12] = '7';
  ASSERT_TRUE(os::write_file(path + ".ids", line));
  EXPECT_EQ(open(path)->load().value().next_id, JobId(7));
}

}  // namespace
}  // namespace gflow::store
