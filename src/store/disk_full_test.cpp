// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "os/file.h"
#include "store/samples.h"
#include "store/store.h"

namespace gflow::store {
namespace {

using namespace samples;

/// A file system of 4 MiB; only root can have one.
class SmallDisk {
 public:
  SmallDisk() {
    if (::mount("gflow-test", at_.path().c_str(), "tmpfs", 0, "size=4m") != 0) error_ = errno;
  }
  ~SmallDisk() {
    if (error_ == 0) (void)::umount2(at_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] std::string trouble() const {
    return error_ == 0 ? "" : std::string("cannot mount a tmpfs: ") + std::strerror(error_);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return at_.file(name); }
  /// Takes every block that is left.
  void fill() const {
    const auto fd = os::open_file(file("filler"), O_WRONLY | O_CREAT | O_APPEND).value();
    for (std::size_t chunk = 65536; chunk > 0; chunk /= 2) {
      while (os::write_all(fd.get(), std::string(chunk, 'x'))) {
      }
    }
  }

 private:
  Directory at_;
  int error_ = 0;
};

std::vector<Job> many(std::uint64_t first, std::uint64_t count) {
  std::vector<Job> jobs;
  for (std::uint64_t id = first; id < first + count; ++id) jobs.push_back(queued(id));
  return jobs;
}

TEST(DiskFullTest, TheSameBatchGoesThroughOnceThereIsRoom) {
  const SmallDisk disk;
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  Ballast ballast(disk.file("ballast"), Memory::mib(1));
  ASSERT_TRUE(ballast.held());
  const Payload what = payload();
  std::vector<Job> jobs = many(1, 100);
  {
    auto store = open(disk.file("gflow.db"));
    ASSERT_TRUE(store->commit(batch_of(jobs, what)));
    disk.fill();
    EXPECT_EQ(ballast.disk_free(), Memory{0});

    const std::vector<Job> more = many(101, 300);
    Batch batch = batch_of(more, what);
    batch.next_id = JobId(5000);
    for (int again = 0; again < 3; ++again) {
      EXPECT_EQ(store->commit(batch).error().code, Code::Exhausted);
      EXPECT_EQ(jobs_of(*store), jobs);
    }
    // One step is an eighth; the batch needs a few.
    int steps = 0;
    for (; !store->commit(batch); ++steps) ballast.release_step();
    EXPECT_GT(steps, 0);
    EXPECT_EQ(ballast.steps_left(), Ballast::kSteps - steps);
    EXPECT_FALSE(ballast.held());
    jobs.insert(jobs.end(), more.begin(), more.end());
    EXPECT_EQ(jobs_of(*store), jobs);
  }
  auto store = open(disk.file("gflow.db"));
  EXPECT_EQ(jobs_of(*store), jobs);
  EXPECT_EQ(store->payload(JobId(400)).value(), what);
}

TEST(DiskFullTest, AStoreOpensOnAFullDisk) {
  const SmallDisk disk;
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  const std::vector<Job> jobs = many(1, 100);
  ASSERT_TRUE(open(disk.file("gflow.db"))->commit(batch_of(jobs, payload())));
  disk.fill();
  auto store = open(disk.file("gflow.db"));
  EXPECT_EQ(jobs_of(*store), jobs);
  Job running = jobs[0];
  running.state = Running{attempt(), {}};
  EXPECT_EQ(store->commit(Batch{.saves = {&running}}).error().code, Code::Exhausted);
}

TEST(DiskFullTest, ANewStoreSaysWhatIsMissing) {
  const SmallDisk disk;
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  disk.fill();
  const auto store = Store::open(disk.file("gflow.db"));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Code::Exhausted);
  EXPECT_NE(store.error().message.find("no space left on the disk"), std::string::npos)
      << store.error().message;
}

TEST(BallastTest, IsGivenBackInStepsAndTakenBackWhole) {
  const SmallDisk disk;
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  Ballast ballast(disk.file("ballast"), Memory::mib(1));
  EXPECT_TRUE(ballast.held());
  disk.fill();
  for (int left = Ballast::kSteps; left > 0; --left) {
    EXPECT_EQ(ballast.steps_left(), left);
    ballast.release_step();
    EXPECT_EQ(ballast.disk_free(), (Memory{std::int64_t{131'072} * (Ballast::kSteps - left + 1)}));
  }
  EXPECT_EQ(ballast.steps_left(), 0);
  disk.fill();
  ballast.restore();
  EXPECT_EQ(ballast.steps_left(), 0);
  // Room for it, but not for as much again.
  ASSERT_EQ(::truncate(disk.file("filler").c_str(), Memory::mib(2).bytes + 500'000), 0);
  ballast.restore();
  EXPECT_EQ(ballast.steps_left(), 0);
  ASSERT_TRUE(os::remove_tree(disk.file("filler")));
  ballast.restore();
  EXPECT_TRUE(ballast.held());
  // Too large for the disk: nothing is left lying about.
  const Ballast huge(disk.file("huge"), Memory::mib(64));
  EXPECT_FALSE(huge.held());
  EXPECT_FALSE(os::exists(disk.file("huge")));
}

TEST(BallastTest, MoreThanThereIsIsRefusedUnlessItWasThereOnce) {
  const SmallDisk disk;
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  {
    const Ballast most(disk.file("ballast"), Memory{2900 * 1024});
    EXPECT_TRUE(most.held()) << "more than half of what is free";
    EXPECT_TRUE(most.check());
  }
  const Ballast more(disk.file("ballast"), Memory::mib(64));
  EXPECT_FALSE(more.held());
  const auto refused = more.check();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("[store] ballast is 64M, and "), std::string::npos)
      << refused.error().message;
  Ballast again(disk.file("ballast"), Memory{2900 * 1024});
  again.release_step();
  again.release_step();
  ASSERT_TRUE(os::write_file(disk.file("more"), std::string(600'000, 'x')));
  again.restore();
  EXPECT_FALSE(again.held());
  EXPECT_TRUE(again.check()) << "it was called upon";
}

TEST(BallastTest, NoMoreIsKeptThanWasAskedFor) {
  const Directory directory;
  {
    const Ballast large(directory.file("ballast"), Memory::mib(2));
    ASSERT_TRUE(large.held());
  }
  const Ballast small(directory.file("ballast"), Memory::mib(1));
  EXPECT_TRUE(small.held());
  EXPECT_EQ(std::filesystem::file_size(directory.file("ballast")), 1U << 20);
}

TEST(BallastTest, AFileThatOnlyLooksLikeOneIsFilled) {
  const Directory directory;
  ASSERT_TRUE(os::write_file(directory.file("ballast"), ""));
  ASSERT_EQ(::truncate(directory.file("ballast").c_str(), Memory::mib(1).bytes), 0);  // a hole
  const Ballast ballast(directory.file("ballast"), Memory::mib(1));
  EXPECT_TRUE(ballast.held());
  EXPECT_GT(ballast.disk_free(), Memory{0});
}

}  // namespace
}  // namespace gflow::store
