// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

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

}  // namespace
}  // namespace gflow::daemon
