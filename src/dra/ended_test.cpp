// SPDX-License-Identifier: Apache-2.0
#include "dra/ended.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "os/fd.h"
#include "os/file.h"
#include "share/account_file.h"

namespace gflow::dra {
namespace {

/// An account as a container has it mapped, with what is told of its processes.
class Ended : public testing::Test {
 protected:
  Ended() {
    EXPECT_TRUE(os::make_directories(directory));
    const auto bytes = share::encode_account({{.uuid = "GPU-a", .bytes = 1 << 30, .share = 5000}});
    EXPECT_TRUE(os::write_file(directory + "/account", *bytes));
    EXPECT_TRUE(os::write_file(directory + "/ended", share::encode_ended()));
    const os::Fd file(::open((directory + "/account").c_str(), O_RDWR | O_CLOEXEC));
    void* const mapped =
        ::mmap(nullptr, sizeof(share::Account), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    account = static_cast<share::Account*>(mapped);
  }
  ~Ended() override {
    ::munmap(account, sizeof(share::Account));
    (void)os::remove_tree(directory);
  }

  [[nodiscard]] std::vector<share::ProcessId> told() const {
    const std::string bytes = os::read_file(directory + "/ended").value();
    EXPECT_EQ(bytes.size(), sizeof(share::EndedProcesses));
    std::vector<share::ProcessId> found;
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(share::ProcessId)) {
      share::ProcessId one;
      std::memcpy(&one, bytes.data() + at, sizeof(one));
      if (one.pid != 0) found.push_back(one);
    }
    return found;
  }

  const std::string directory = testing::TempDir() + "/gflow-ended-" + std::to_string(::getpid());
  share::Account* account = nullptr;
};

/// Takes a slot of the account, says so once its first thread is gone, and waits. Its /proc is that
/// of its namespace.
[[noreturn]] void occupy(share::Account& account, int told) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("proc", "/proc", "proc", 0, nullptr) != 0) {
    ::_exit(1);
  }
  const auto slot = share::AccountBook(account).enter(share::this_process());
  static std::atomic<int> first_is_there{1};  // the kernel clears it when the first thread ends
  (void)::syscall(SYS_set_tid_address, &first_is_there);
  std::thread([slot, told] {
    // A program may go on without its first thread.
    while (first_is_there.load() != 0) (void)::syscall(SYS_futex, &first_is_there, 0, 1, nullptr);
    const char word = slot ? 'y' : 'n';
    (void)!::write(told, &word, 1);
    for (;;) (void)::pause();
  }).detach();
  (void)::syscall(SYS_exit, 0);  // without unwinding what the test is in
  std::abort();
}

/// The parent of the first process of a pid namespace, until it is told a word.
[[noreturn]] void keep(share::Account& account, int told, int end) {
  if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) ::_exit(1);
  const pid_t first = ::fork();
  if (first == 0) occupy(account, told);
  char nothing = 0;
  (void)!::read(end, &nothing, 1);
  ::kill(first, SIGKILL);
  ::_exit(::waitpid(first, nullptr, 0) == first ? 0 : 1);
}

/// A process that has a slot, the first of a pid namespace of its own, as of a container.
class Container {
 public:
  explicit Container(share::Account& account) {
    std::array<int, 2> told{-1, -1};
    std::array<int, 2> end{-1, -1};
    EXPECT_EQ(::pipe2(told.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(end.data(), O_CLOEXEC), 0);
    const os::Fd hears(told[0]);
    os::Fd says(told[1]);
    const os::Fd waits(end[0]);
    end_ = os::Fd(end[1]);
    parent_ = ::fork();
    if (parent_ == 0) keep(account, says.get(), waits.get());
    says = os::Fd();
    char word = 'n';
    has_slot_ = ::read(hears.get(), &word, 1) == 1 && word == 'y';
  }
  ~Container() { end(); }
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  [[nodiscard]] bool has_slot() const { return has_slot_; }
  /// Until it is gone.
  void end() {
    if (parent_ <= 0) return;
    (void)!::write(end_.get(), "e", 1);
    (void)::waitpid(parent_, nullptr, 0);
    parent_ = 0;
  }

 private:
  pid_t parent_ = 0;
  os::Fd end_;  ///< where it is told to
  bool has_slot_ = false;
};

TEST_F(Ended, NobodyIsToldOfWhoLives) {
  EndedTeller teller;
  teller.look({directory});
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes pid namespaces";
  const Container one(*account);
  ASSERT_TRUE(one.has_slot());
  teller.look({directory, directory + "/none"});
  teller.look({directory});
  EXPECT_TRUE(told().empty());
}

TEST_F(Ended, OneIsToldOfOnceItsContainerIsGone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes pid namespaces";
  EndedTeller teller;
  Container first(*account);
  Container second(*account);
  ASSERT_TRUE(first.has_slot() && second.has_slot());
  const share::AccountBook book(*account);
  const share::ProcessId of_first = book.process_in(0);
  EXPECT_NE(of_first.pid_namespace, book.process_in(1).pid_namespace);
  teller.look({directory});
  first.end();
  teller.look({directory});
  EXPECT_EQ(told(), std::vector{of_first});
  second.end();
  const Container third(*account);
  EndedTeller().look({directory});  // which has not seen them live
  EXPECT_EQ(told(), (std::vector{of_first, book.process_in(1)}));
}

TEST_F(Ended, OneThatStartedAtAnotherTimeIsAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes pid namespaces";
  const Container one(*account);
  ASSERT_TRUE(one.has_slot());
  account->processes[0].start_time -=
      1;  // as of one before it, of whose namespace it has the number
  EndedTeller().look({directory});
  EXPECT_EQ(told(), std::vector{share::AccountBook(*account).process_in(0)});
}

TEST_F(Ended, JunkInAnAccountIsPassedBy) {
  EndedTeller teller;
  account->processes[0].pid_namespace = 1;
  account->processes[0].start_time = 1;
  account->processes[0].pid = 1;
  account->magic = 0;
  teller.look({directory});
  ASSERT_TRUE(os::write_file(directory + "/account", "short"));
  teller.look({directory});
  EXPECT_TRUE(told().empty());
}

}  // namespace
}  // namespace gflow::dra
