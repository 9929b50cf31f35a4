// SPDX-License-Identifier: Apache-2.0
#include "park/watchers.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include <gtest/gtest.h>

#include "os/file.h"
#include "os/process.h"
#include "share/account_file.h"

namespace gflow::park {
namespace {

/// An account of whole GPUs in a file, in which this process has a slot.
class Watchers : public testing::Test {
 protected:
  Watchers() : path(testing::TempDir() + "watchers" + std::to_string(::getpid())) {
    share::AccountBook book(*account);
    const std::string bytes = share::encode_account({}).value();
    std::memcpy(static_cast<void*>(account.get()), bytes.data(), bytes.size());
    EXPECT_TRUE(book.enter(share::this_process()));
    write();
  }
  ~Watchers() override {
    std::filesystem::remove(path);
    std::filesystem::remove_all(path + ".lib");
  }
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  void write() const {
    const auto* const bytes = reinterpret_cast<const char*>(account.get());
    EXPECT_TRUE(os::write_file(path, {bytes, sizeof(share::Account)}));
  }
  [[nodiscard]] std::string why_not(pid_t process) const {
    const auto facts = os::process_facts(process);
    if (!facts) return "gone";
    const auto checked = check_watchers(path, {*facts});
    return checked ? "" : checked.error().message;
  }

  std::string path;
  std::unique_ptr<share::Account> account = std::make_unique<share::Account>();
};

/// A child that waits to be killed, of a parent that may be another process.
class Child {
 public:
  explicit Child(bool is_in_namespace) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) std::abort();
    parent_ = ::fork();
    if (parent_ == 0) {
      const bool can = !is_in_namespace || ::unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
      const pid_t child = can ? ::fork() : 0;
      if (child == 0 && can) ::pause();
      (void)!::write(ends[1], &child, sizeof child);
      ::pause();
    }
    if (::read(ends[0], &pid, sizeof pid) != sizeof pid) std::abort();
    (void)::close(ends[0]);
    (void)::close(ends[1]);
  }
  ~Child() {
    if (pid != 0) (void)::kill(pid, SIGKILL);
    (void)::kill(parent_, SIGKILL);
    (void)::waitpid(parent_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid = 0;  ///< 0: there could be none

 private:
  pid_t parent_ = 0;
};

/// As by ld.so.
void* map_library(const std::string& directory) {
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/libgflow-share.so";
  const os::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0700));
  EXPECT_EQ(::ftruncate(file.get(), 4096), 0);
  return ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file.get(), 0);
}

TEST_F(Watchers, AreThoseWithASlotThatLoadTheLibrary) {
  const std::string refused = why_not(::getpid());
  EXPECT_TRUE(refused.ends_with("could not tell that it wants its GPU back")) << refused;
  void* const mapped = map_library(path + ".lib");
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(why_not(::getpid()), "");
  (void)::munmap(mapped, 4096);
  const Child other(false);
  EXPECT_EQ(why_not(other.pid),
            "process " + std::to_string(other.pid) +
                " (park_test) does not load libgflow-share.so, and could not tell that it wants "
                "its GPU back");
}

TEST_F(Watchers, AreNotKnownInAnotherPidNamespace) {
  const Child other(true);
  if (other.pid == 0) GTEST_SKIP() << "this user may not make a pid namespace";
  account->processes[1].pid_namespace = account->processes[0].pid_namespace + 1;
  account->processes[1].pid = 2;
  write();
  EXPECT_EQ(why_not(other.pid),
            "process " + std::to_string(other.pid) +
                " (park_test) is in a pid namespace of its own, so it is not known whether it "
                "could tell that it wants its GPU back");
}

TEST_F(Watchers, WhoHasEndedNeedNotTell) {
  ProcessFacts gone = os::process_facts(::getpid()).value();
  gone.start_time -= 1;
  EXPECT_TRUE(check_watchers(path, {gone}));
}

TEST_F(Watchers, AreInAnAccountOfWholeGpus) {
  account->version = share::kOlderAccountVersion;
  write();
  EXPECT_EQ(why_not(::getpid()), path + " is not the account of a job with whole GPUs");
  EXPECT_TRUE(os::write_file(path, ""));
  EXPECT_EQ(why_not(::getpid()), path + " is not the account of a job with whole GPUs");
  std::filesystem::remove(path);
  EXPECT_NE(why_not(::getpid()), "");
}

}  // namespace
}  // namespace gflow::park
