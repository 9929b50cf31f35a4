// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>

#include <functional>

#include "base/proc_text.h"
#include "runner/attempt_files.h"
#include "runner/test_bench.h"
#include "runner/traced_process.h"

/// Launches that somebody kills or stops on their way: what did not run is told so and may be
/// started anew, what ran is not, and nothing waits for ever.
namespace gflow::runner {
namespace {

std::vector<int> children_of(int pid) {
  const std::string number = std::to_string(pid);
  return parse_pids(
      os::read_file("/proc/" + number + "/task/" + number + "/children").value_or(""));
}

/// Its arguments are there a moment after posix_spawn(3) is done.
bool is_standby(int pid) {
  std::string words;
  while (words.empty()) {
    const auto facts = os::process_facts(pid);
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

/// Where none is kept ready, as where all control groups are of v2: it is started for its job.
class Spawned : public Unconfirmed {
 protected:
  [[nodiscard]] bool UsesCgroups() const override { return false; }
  /// A supervisor that gets this signal before it is one, the first time.
  void make_shim_that_gets(const std::string& signal) {
    const std::string shim = path("shim-" + signal);
    const std::string went = path("went-" + signal);
    std::ofstream(shim) << "#!/bin/sh\n[ -e " << went << " ] || { >" << went << "; kill -" << signal
                        << " $$; }\nexec " << options_.shim << " \"$@\"\n";
    ASSERT_EQ(::chmod(shim.c_str(), 0755), 0);
    options_.shim = shim;
    options_.launch_patience = std::chrono::milliseconds(20);
    reopen();
  }
};

TEST_F(Spawned, ASupervisorThatIsStoppedBeforeItTakesTheJobIsReplaced) {
  make_shim_that_gets("STOP");
  launch(writer());
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::NotStarted) << outcome.message;
  EXPECT_TRUE(is_of_any_job(outcome.failure));
  EXPECT_NE(outcome.message.find("is stopped (T)"), std::string::npos) << outcome.message;
  expect_runs_anew();
}

TEST_F(Spawned, ASupervisorThatIsKilledBeforeItTakesTheJobHasRunNothing) {
  make_shim_that_gets("KILL");
  launch(writer());
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::NotStarted) << outcome.message;
  EXPECT_TRUE(is_of_any_job(outcome.failure)) << outcome.message;
  expect_runs_anew();
}

/// Between the program of a job and the word of its supervisor that it runs nobody can say from
/// outside whether it does.
TEST_F(Spawned, ASupervisorHeldBeforeItSaysThatTheJobRunsKeepsItsLimit) {
  options_.end_patience = std::chrono::milliseconds(100);
  const std::string held = path("held");
  const std::string shim = path("shim-held");
  std::ofstream(shim) << "#!/bin/sh\necho $$ > " << held << "\nkill -STOP $$\nexec "
                      << options_.shim << " \"$@\"\n";
  ASSERT_EQ(::chmod(shim.c_str(), 0755), 0);
  options_.shim = shim;
  options_.launch_patience = std::chrono::seconds(60);  // it is its debugger's until it is held
  reopen();
  Fifo pid = fifo("held");
  LaunchOrder made = order({"/bin/sh", "-c", "printf x >> ran; echo $$ > runs; exec sleep 1000"});
  constexpr std::chrono::hours kHour{1};
  made.time_limit = kHour;
  Fifo runs = fifo("runs");
  launch(made);
  const int supervisor = pid.number();
  std::optional<ProcessFacts> facts;
  while ((facts = os::process_facts(supervisor)) && !facts->is_stopped() && !facts->is_dead()) {
  }
  Traced traced(supervisor);
  if (!traced.holds()) {
    ASSERT_EQ(::kill(supervisor, SIGCONT), 0);
    GTEST_SKIP() << "processes cannot be traced here";
  }
  ASSERT_EQ(::kill(supervisor, SIGCONT), 0);
  constexpr std::uint64_t kStatus = 3;
  ASSERT_TRUE(traced.step_to_write(kStatus));
  const os::Fd program = hold(runs.number());
  runner_->change_limit(JobId(7), 1, kHour, kHour - std::chrono::seconds(1));
  const auto first = next(JobId(7));
  const auto* gone = first ? std::get_if<Gone>(&*first) : nullptr;
  ASSERT_NE(gone, nullptr) << "it was never said that it runs";
  is_over();
  EXPECT_EQ(gone->outcome.reason, EndReason::TimeLimit) << gone->outcome.message;
  EXPECT_TRUE(has_ended(program));
  EXPECT_EQ(trace(), "x");
}

}  // namespace
}  // namespace gflow::runner
