// SPDX-License-Identifier: Apache-2.0
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdint>
#include <functional>

#include "attempt/proc_text.h"
#include "runner/attempt_files.h"
#include "runner/test_bench.h"

/// Launches that somebody kills or stops on their way: what did not run is told so and may be
/// started anew, what ran is not, and nothing waits for ever.
namespace gflow::runner {
namespace {

/// A process under a debugger, which no SIGCONT lets go on; until this is destroyed.
class Traced {
 public:
  enum class Step { SystemCall, Executed, Ended };

  explicit Traced(int pid) : pid_(pid) {
    constexpr long kOptions = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;
    if (::ptrace(PTRACE_SEIZE, pid, nullptr, kOptions) != 0) return;
    (void)::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr);
    holds_ = wait() && WIFSTOPPED(status_);
  }
  ~Traced() {
    if (holds_) (void)::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;
  [[nodiscard]] bool holds() const { return holds_; }

  /// Lets it go on until it enters or leaves its next system call, or has become another program.
  [[nodiscard]] Step step() {
    while (true) {
      const bool is_signal = WSTOPSIG(status_) != (SIGTRAP | 0x80) && status_ >> 16 == 0;
      const long deliver = is_signal ? WSTOPSIG(status_) : 0;
      if (::ptrace(PTRACE_SYSCALL, pid_, nullptr, deliver) != 0 || !wait()) return Step::Ended;
      if (!WIFSTOPPED(status_)) return ended();
      if (status_ >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8))) return Step::Executed;
      if (WSTOPSIG(status_) == (SIGTRAP | 0x80)) return Step::SystemCall;
    }
  }
  /// Until it leaves this system call.
  [[nodiscard]] bool step_over(std::uint64_t number) {
    for (bool inside = false; step() == Step::SystemCall;) {
      __ptrace_syscall_info info{};
      if (::ptrace(PTRACE_GET_SYSCALL_INFO, pid_, sizeof info, &info) <= 0) return false;
      if (info.op == PTRACE_SYSCALL_INFO_EXIT && inside) return true;
      inside = info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == number;
    }
    return false;
  }
  /// It is told first that the process has ended; then its parent is.
  void wait_for_end() {
    while (holds_ && wait() && WIFSTOPPED(status_)) {
    }
    holds_ = false;
  }

 private:
  [[nodiscard]] bool wait() { return ::waitpid(pid_, &status_, __WALL) == pid_; }
  Step ended() {
    holds_ = false;
    return Step::Ended;
  }

  int pid_;
  int status_ = 0;
  bool holds_ = false;
};

std::vector<int> children_of(int pid) {
  const std::string number = std::to_string(pid);
  return attempt::parse_pids(
      os::read_file("/proc/" + number + "/task/" + number + "/children").value_or(""));
}

/// Its arguments are there a moment after posix_spawn(3) is done.
bool is_standby(int pid) {
  std::string words;
  while (words.empty()) {
    const auto facts = process_facts(pid);
    if (!facts || facts->is_dead()) return false;
    words = os::read_file("/proc/" + std::to_string(pid) + "/cmdline").value_or("");
  }
  return words.find("--standby") != std::string::npos;
}

class Unconfirmed : public RunnerBench {
 protected:
  [[nodiscard]] bool UsesCgroups() const override { return true; }

  /// The supervisor that is kept ready, and its child, once that waits for a job; zeros if none is
  /// kept ready here.
  struct Ready {
    int supervisor = 0;
    int child = 0;
  };
  [[nodiscard]] static Ready ready() {
    for (const int pid : children_of(::getpid())) {
      if (!is_standby(pid)) continue;
      while (os::exists("/proc/" + std::to_string(pid))) {
        const std::vector<int> its = children_of(pid);
        if (!its.empty()) return {pid, its.front()};
      }
    }
    return {};
  }
  [[nodiscard]] LaunchOrder writer() const {
    return order({"/bin/sh", "-c", "printf x >> ran; exit 7"});
  }
  [[nodiscard]] std::string trace() const { return os::read_file(path("ran")).value_or(""); }
  int sweep(bool supervisor, const std::function<void(const Outcome&)>& check);
  /// The job is launched again and runs, once.
  void expect_runs_anew() {
    EXPECT_EQ(trace(), "");
    runner_->forget(JobId(7), 1);
    LaunchOrder again = writer();
    again.attempt = 2;
    const Outcome outcome = run(again);
    EXPECT_EQ(outcome.reason, EndReason::Exited) << outcome.message;
    EXPECT_EQ(outcome.exit_code, 7);
    EXPECT_EQ(trace(), "x");
  }
};

TEST_F(Unconfirmed, AStoppedSupervisorOrItsChildGoesOnWithTheJob) {
  for (const bool child : {false, true}) {
    const Ready kept = ready();
    if (kept.supervisor == 0) GTEST_SKIP() << "none is kept ready here";
    ASSERT_EQ(::kill(child ? kept.child : kept.supervisor, SIGSTOP), 0);
    LaunchOrder made = writer();
    made.job = JobId(child ? 8 : 7);
    const Outcome outcome = run(made);
    EXPECT_EQ(outcome.reason, EndReason::Exited) << outcome.message;
    EXPECT_EQ(outcome.exit_code, 7);
  }
  EXPECT_EQ(trace(), "xx");
}

/// Kills one of the two at each system call of the child from when it is told its job until that
/// runs. The end of each attempt is given to `check`; the number of them.
int Unconfirmed::sweep(bool supervisor, const std::function<void(const Outcome&)>& check) {
  for (int point = 0;; ++point) {
    const Ready kept = ready();
    if (kept.supervisor == 0) return 0;
    Traced child(kept.child);
    if (!child.holds()) return 0;
    LaunchOrder made = writer();
    made.job = JobId(static_cast<std::uint64_t>(point) + 100);
    launch(made);
    EXPECT_TRUE(child.step_over(SYS_recvmsg));
    auto step = Traced::Step::SystemCall;
    for (int i = 0; i < point && step == Traced::Step::SystemCall; ++i) step = child.step();
    if (step == Traced::Step::Executed) return point;
    EXPECT_EQ(step, Traced::Step::SystemCall) << "at point " << point;
    if (step != Traced::Step::SystemCall) return point;
    EXPECT_EQ(::kill(supervisor ? kept.supervisor : kept.child, SIGKILL), 0);
    child.wait_for_end();
    SCOPED_TRACE("killed at point " + std::to_string(point));
    check(wait_gone(made.job));
    EXPECT_EQ(trace(), "");
    runner_->forget(made.job, 1);
  }
}

TEST_F(Unconfirmed, AChildThatIsKilledBeforeItIsTheJobHasRunNothing) {
  const int points = sweep(false, [](const Outcome& outcome) {
    EXPECT_EQ(outcome.reason, EndReason::NotStarted) << outcome.message;
    EXPECT_EQ(outcome.failure.kind, FailureKind::Passing);
    EXPECT_TRUE(is_of_any_job(outcome.failure));
    EXPECT_NE(outcome.message.find("signal 9"), std::string::npos) << outcome.message;
  });
  if (points == 0) GTEST_SKIP() << "none is kept ready here, or it cannot be traced";
  EXPECT_GT(points, 20);
}

// Between the note of the child that it runs its program now, and the program, nobody is left to
// know.
TEST_F(Unconfirmed, ASupervisorThatIsKilledBeforeTheJobRunsHasRunNothing) {
  int lost = 0;
  const int points = sweep(true, [&lost](const Outcome& outcome) {
    if (outcome.reason == EndReason::SupervisorDied) {
      ++lost;
      return;
    }
    EXPECT_EQ(outcome.reason, EndReason::NotStarted) << outcome.message;
    EXPECT_TRUE(is_of_any_job(outcome.failure)) << outcome.message;
  });
  if (points == 0) GTEST_SKIP() << "none is kept ready here, or it cannot be traced";
  EXPECT_GT(points, 20);
  EXPECT_LE(lost, 2) << "leaving pwrite(2), and entering execve(2)";
}

TEST_F(Unconfirmed, ASupervisorThatIsKilledBeforeItTakesTheJobHasRunNothing) {
  const Ready kept = ready();
  if (kept.supervisor == 0) GTEST_SKIP() << "none is kept ready here";
  const Traced held(kept.supervisor);
  if (!held.holds()) GTEST_SKIP() << "processes cannot be traced here";
  launch(writer());
  ASSERT_EQ(::kill(kept.supervisor, SIGKILL), 0);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::NotStarted) << outcome.message;
  EXPECT_TRUE(is_of_any_job(outcome.failure)) << outcome.message;
  expect_runs_anew();
}

TEST_F(Unconfirmed, ASupervisorThatDoesNotTakeTheJobIsReplaced) {
  options_.launch_patience = std::chrono::milliseconds(20);
  reopen();
  const Ready kept = ready();
  if (kept.supervisor == 0) GTEST_SKIP() << "none is kept ready here";
  const Traced held(kept.supervisor);
  if (!held.holds()) GTEST_SKIP() << "processes cannot be traced here";
  launch(writer());
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::NotStarted) << outcome.message;
  EXPECT_TRUE(is_of_any_job(outcome.failure));
  EXPECT_NE(outcome.message.find("stopped by a debugger"), std::string::npos) << outcome.message;
  expect_runs_anew();
}

}  // namespace
}  // namespace gflow::runner
