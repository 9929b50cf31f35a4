// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_lock.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <future>

#include "os/file.h"
#include "os/lock_holder.h"
#include "runner/traced_process.h"

namespace gflow::daemon {
namespace {

/// A process that does nothing, until this is destroyed.
class Idle {
 public:
  Idle() : pid_(::fork()) {
    while (pid_ == 0) ::pause();
  }
  ~Idle() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
  [[nodiscard]] int pid() const { return pid_; }

 private:
  int pid_;
};

TEST(DaemonLock, OneThatIsStoppedIsToldFromOneThatIsTraced) {
  const Idle daemon;
  const os::LockHolder holder{daemon.pid(), ""};
  EXPECT_TRUE(check_not_stopped(holder));
  {
    const runner::Traced traced(daemon.pid());
    if (!traced.holds()) GTEST_SKIP() << "processes cannot be traced here";
    EXPECT_EQ(os::process_state(daemon.pid()), 't');
    EXPECT_TRUE(check_not_stopped(holder)) << "it is let go on at once";
  }
  ASSERT_EQ(::kill(daemon.pid(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(daemon.pid(), &status, WUNTRACED), daemon.pid());
  const auto stopped = check_not_stopped(holder);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::Timeout);
}

/// One that took it a moment ago has not written who it is yet.
TEST(DaemonLock, OneThatIsNotNamedYetIsWaitedFor) {
  const std::string path = testing::TempDir() + "/gflow-lock-" + std::to_string(::getpid());
  auto first = os::lock_file(path);
  ASSERT_TRUE(first) << first.error().message;
  const os::Fd looks(::inotify_init1(IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(looks.get(), path.c_str(), IN_CLOSE_NOWRITE), 0);
  auto second = std::async(std::launch::async, [&path] { return take_daemon_lock(path, {1, ""}); });
  pollfd looked{looks.get(), POLLIN, 0};
  constexpr int kPatienceMs = 60'000;
  ASSERT_EQ(::poll(&looked, 1, kPatienceMs), 1);  // it has read that nobody is named
  const std::string text = os::lock_text({::getpid(), ""});
  ASSERT_TRUE(os::write_all(first->get(), text));
  const auto refused = second.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::WrongState);
  EXPECT_TRUE(refused.error().message.contains("pid " + std::to_string(::getpid())))
      << refused.error().message;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gflow::daemon
