// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>

#include <algorithm>
#include <array>

#include "base/proc_text.h"
#include "runner/attempt_files.h"
#include "runner/test_bench.h"
#include "runner/traced_process.h"

namespace gflow::runner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Says its pid and that of a process in a session of its own, then answers each line it is given.
/// (It looks up again and again because bash runs no trap for a signal that comes just before a
/// read; it waits elsewhere because a read whose time is up loses what it had of a line.)
const std::string kAnswers =
    "setsid sh -c 'while :; do sleep 1000; done' &\n"
    "echo $$ > said; echo $! > said\n"
    "while :; do\n"
    "  read -t 0 < asked || { read -t 0.1 < idle; continue; }\n"
    "  read line < asked; echo $line > said; [ \"$line\" = end ] && exit 7\n"
    "done";

class Suspend : public RunnerBench {
 protected:
  void start(const LaunchOrder& order, int processes) {
    launch(order);
    for (int i = 0; i < processes; ++i) pids_.push_back(said_.number());
  }

  [[nodiscard]] std::optional<attempt::Order> order_on_disk() const {
    return AttemptFiles(options_.attempts_dir, JobId(7), 1).order().value();
  }
  /// Stopped, or in a vfork(2) (state D) that ends when its child goes on, which is stopped. In D
  /// with a child that is still on its way to its execve(2) it is not: it goes on for a moment
  /// after that.
  [[nodiscard]] bool stands(int pid) const {
    const auto facts = os::process_facts(pid);
    if (!facts || facts->state != 'D') return facts && facts->state == 'T';
    std::string all =
        read("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
    std::ranges::replace(all, ' ', '\n');
    const auto children = parse_pids(all);
    return !children.empty() && std::ranges::all_of(children, [](int child) {
      const auto its = os::process_facts(child);
      return its && its->state == 'T';
    });
  }
  /// Whether every process of the job is stopped now: as the frozen control group says, or each
  /// by itself.
  [[nodiscard]] bool stands() const {
    const auto order = order_on_disk();
    if (order && !order->freeze_cgroup.empty()) {
      const std::string events = read(order->freeze_cgroup + "/cgroup.events");
      return keyed_value(events, "frozen") == 1;
    }
    for (const int pid : pids_) {
      if (!stands(pid)) return false;
    }
    return true;
  }
  /// The supervisor gives no answer, so its work is looked at until it is done.
  template <typename Condition>
  [[nodiscard]] static bool comes_true(Condition condition) {
    for (int looks = 0; looks < kPatienceMs; ++looks) {
      if (condition()) return true;
      (void)::poll(nullptr, 0, 1);
    }
    return false;
  }
  [[nodiscard]] bool becomes(bool standing) const {
    return comes_true([&] { return stands() == standing; });
  }

  Fifo said_ = Fifo("");
  Fifo asked_ = Fifo("");
  Fifo idle_ = Fifo("");  ///< nothing is ever said in it
  std::vector<int> pids_;

  void SetUp() override {
    RunnerBench::SetUp();
    said_ = fifo("said");
    asked_ = fifo("asked");
    idle_ = fifo("idle");
  }
};

TEST_P(Suspend, StandsStillUntilItIsResumed) {
  start(script(kAnswers), 2);
  runner_->suspend(JobId(7), 1, {});
  EXPECT_TRUE(becomes(true));
  // Told twice, as after a restart of the daemon; once is enough to go on.
  runner_->suspend(JobId(7), 1, {});
  asked_.say("question");
  EXPECT_TRUE(becomes(true));
  runner_->resume(JobId(7), 1);
  EXPECT_EQ(said_.line(), "question");
  EXPECT_TRUE(becomes(false));
  runner_->resume(JobId(7), 1);
  asked_.say("end");
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Exited);
  EXPECT_EQ(outcome.exit_code, 7);
}

TEST_P(Suspend, ItsTimeDoesNotRunMeanwhile) {
  const Now begin = os::now();
  start(script(kAnswers), 2);
  runner_->suspend(JobId(7), 1, {});
  ASSERT_TRUE(becomes(true));
  runner_->change_limit(JobId(7), 1, seconds(1), {});
  pollfd silent{runner_->fd(), POLLIN, 0};
  while (::poll(&silent, 1, 0) > 0) {
    for (const Report& report : runner_->poll()) {
      EXPECT_TRUE(std::holds_alternative<Started>(report)) << "it ended while it stood still";
    }
  }
  constexpr int kLookedAtMs = 1500;
  EXPECT_EQ(::poll(&silent, 1, kLookedAtMs), 0) << "something happened while it stood still";
  ASSERT_TRUE(stands());
  runner_->resume(JobId(7), 1);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::TimeLimit);
  EXPECT_GE(outcome.run_time, seconds(1));
  EXPECT_LE(outcome.run_time + milliseconds(kLookedAtMs), os::now().mono - begin.mono);
}

TEST_P(Suspend, ToldToStopItCanCleanUp) {
  LaunchOrder made = script("trap 'echo clean; exit 5' USR1\n" + kAnswers);
  made.grace = seconds(60);
  start(made, 2);
  runner_->suspend(JobId(7), 1, {});
  ASSERT_TRUE(becomes(true));
  runner_->stop(JobId(7), 1, SIGUSR1, EndReason::Preempted);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Preempted);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_EQ(log(), "clean\n");
}

TEST_P(Suspend, ASignalSentMeanwhileComesWhenItGoesOn) {
  start(script("trap 'echo got it > said' USR1\n" + kAnswers), 2);
  runner_->suspend(JobId(7), 1, {});
  ASSERT_TRUE(becomes(true));
  runner_->signal(JobId(7), 1, SIGUSR1);
  EXPECT_TRUE(becomes(true));
  runner_->resume(JobId(7), 1);
  EXPECT_EQ(said_.line(), "got it");
  runner_->signal(JobId(7), 1, SIGUSR1);
  EXPECT_EQ(said_.line(), "got it");
  asked_.say("end");
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Exited);
  EXPECT_EQ(outcome.exit_code, 7);
}

TEST_P(Suspend, AtOnceMeansAtOnce) {
  start(script("trap '' TERM\n" + kAnswers), 2);
  runner_->suspend(JobId(7), 1, {});
  ASSERT_TRUE(becomes(true));
  runner_->stop(JobId(7), 1, SIGKILL, EndReason::Cancelled);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Cancelled);
  EXPECT_EQ(outcome.signal, SIGKILL);
}

TEST_P(Suspend, WhatIsBeingStoppedIsNot) {
  LaunchOrder made = script(
      "trap 'echo trapped > said; read x < asked; exit 3' TERM; echo $$ > said\n"
      "while :; do read -t 0.1 x < idle; done");
  made.grace = seconds(60);
  start(made, 1);
  runner_->stop(JobId(7), 1, 0, EndReason::Preempted);
  EXPECT_EQ(said_.line(), "trapped");
  runner_->suspend(JobId(7), 1, {});
  asked_.say("go on");
  EXPECT_EQ(wait_gone().exit_code, 3);
}

TEST_P(Suspend, WhoCancelsOverrulesWhoMakesRoom) {
  const struct {
    EndReason first;
    EndReason second;
    EndReason told;
  } kTable[] = {
      {EndReason::Preempted, EndReason::Cancelled, EndReason::Cancelled},
      {EndReason::Cancelled, EndReason::Preempted, EndReason::Cancelled},
  };
  JobId job(7);
  for (const auto& row : kTable) {
    LaunchOrder made = script(
        "trap 'echo trapped > said' TERM; trap 'exit 3' INT; echo $$ > said\n"
        "while :; do read -t 0.1 x < idle; done");
    made.job = job;
    made.grace = seconds(60);
    launch(made);
    (void)said_.number();
    runner_->stop(job, 1, SIGTERM, row.first);
    EXPECT_EQ(said_.line(), "trapped");
    runner_->stop(job, 1, SIGINT, row.second);
    EXPECT_EQ(wait_gone(job).reason, row.told);
    ++job.value;
  }
}

TEST_P(Suspend, SurvivesTheDaemon) {
  start(script(kAnswers), 2);
  runner_->suspend(JobId(7), 1, {});
  ASSERT_TRUE(becomes(true));
  reopen();
  ASSERT_TRUE(std::holds_alternative<StillRuns>(runner_->adopt(JobId(7), 1, options_.boot_id)));
  EXPECT_TRUE(stands());
  runner_->resume(JobId(7), 1);
  asked_.say("end");
  EXPECT_EQ(wait_gone().exit_code, 7);
}

TEST_P(Suspend, NothingIsLeftWhenItsSupervisorIsKilled) {
  start(script(kAnswers), 2);
  std::vector<os::Fd> processes;
  for (const int pid : pids_) processes.push_back(hold(pid));
  runner_->suspend(JobId(7), 1, {});
  ASSERT_TRUE(becomes(true));
  ASSERT_EQ(::kill(shim_of(pids_.front()), SIGKILL), 0);
  EXPECT_EQ(wait_gone().reason, EndReason::SupervisorDied);
  for (const os::Fd& process : processes) EXPECT_TRUE(wait_for_end(process));
}

TEST_P(Suspend, WhatTheJobStoppedItselfStaysStopped) {
  start(script("sh -c 'kill -STOP $$; echo went > said' &\n"
               "echo $$ > said; echo $! > said\n"
               "read line < asked; kill -CONT $!; wait $!; exit 7"),
        2);
  const auto child_is_stopped = [this] {
    const auto facts = os::process_facts(pids_.back());
    return facts && facts->state == 'T';
  };
  ASSERT_TRUE(comes_true(child_is_stopped));
  runner_->suspend(JobId(7), 1, {});
  ASSERT_TRUE(becomes(true));
  runner_->resume(JobId(7), 1);
  ASSERT_TRUE(becomes(false));
  EXPECT_TRUE(child_is_stopped());
  asked_.say("continue it");
  EXPECT_EQ(said_.line(), "went");
  EXPECT_EQ(wait_gone().exit_code, 7);
}

/// Another job has its GPUs by then.
TEST_P(Suspend, OneThatKeepsItsSupervisorStoppedStandsOrEnds) {
  options_.end_patience = milliseconds(100);
  reopen();
  start(script("for i in 1 2 3; do while :; do kill -STOP $PPID; done & echo $! > said; done\n"
               "echo $$ > said; while :; do kill -STOP $PPID; done"),
        4);
  std::vector<os::Fd> processes;
  for (const int pid : pids_) processes.push_back(hold(pid));
  runner_->suspend(JobId(7), 1, {});
  std::optional<Outcome> ended;
  EXPECT_TRUE(comes_true([&] {
    for (const Report& report : runner_->poll()) {
      if (const auto* gone = std::get_if<Gone>(&report)) ended = gone->outcome;
    }
    return ended || stands();
  }));
  if (!ended) {
    // Nobody of it is left to stop its supervisor again: it stays so, and can be ended.
    LaunchOrder other = order({"sleep", "1"});
    other.job = JobId(99);
    EXPECT_EQ(run(other).reason, EndReason::Exited);
    EXPECT_TRUE(reports_.empty());
    EXPECT_TRUE(stands());
    runner_->stop(JobId(7), 1, SIGKILL, EndReason::Cancelled);
    EXPECT_EQ(wait_gone().reason, EndReason::Cancelled);
    for (const os::Fd& process : processes) EXPECT_TRUE(has_ended(process));
    return;
  }
  is_over();
  EXPECT_EQ(ended->reason, EndReason::SupervisorDied);
  EXPECT_NE(ended->message.find("ran on while it was suspended"), std::string::npos);
  for (const os::Fd& process : processes) EXPECT_TRUE(has_ended(process));
}

/// The supervisor is under a debugger, so it hears nothing.
TEST_P(Suspend, OneWhoseSupervisorCannotSuspendItIsFrozenOrEnds) {
  options_.end_patience = milliseconds(100);  // it is looked at only where this polls
  reopen();
  start(script(kAnswers), 2);
  const os::Fd first = hold(pids_.front());
  {
    const Traced supervisor(shim_of(pids_.front()));
    if (!supervisor.holds()) GTEST_SKIP() << "processes cannot be traced here";
    const auto order = order_on_disk();
    const bool can_be_frozen = order && !order->freeze_cgroup.empty();
    runner_->suspend(JobId(7), 1, {});
    if (!can_be_frozen) {
      const Outcome outcome = wait_gone();
      EXPECT_EQ(outcome.reason, EndReason::SupervisorDied);
      EXPECT_NE(outcome.message.find("ran on while it was suspended"), std::string::npos);
      EXPECT_TRUE(has_ended(first));
      return;
    }
    EXPECT_TRUE(becomes(true));
  }
  runner_->resume(JobId(7), 1);
  asked_.say("end");
  EXPECT_EQ(wait_gone().exit_code, 7);
}

/// What the daemon froze without its supervisor can clean up as well.
TEST_P(Suspend, ToldToStopBehindAStoppedSupervisorItCanCleanUp) {
  LaunchOrder made = script("trap 'echo clean; exit 5' USR1\n" + kAnswers);
  made.grace = seconds(60);
  start(made, 2);
  {
    const Traced supervisor(shim_of(pids_.front()));
    if (!supervisor.holds()) GTEST_SKIP() << "processes cannot be traced here";
    runner_->suspend(JobId(7), 1, {});
    runner_->stop(JobId(7), 1, SIGUSR1, EndReason::Preempted);
  }
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Preempted);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_EQ(log(), "clean\n");
}

TEST_P(Suspend, OneThatSomebodyWakesIsSuspendedAgain) {
  options_.end_patience = milliseconds(100);  // it is looked at only where this polls
  reopen();
  start(script(kAnswers), 2);
  runner_->suspend(JobId(7), 1, {});
  ASSERT_TRUE(becomes(true));
  const int supervisor = shim_of(pids_.front());
  ASSERT_EQ(::kill(supervisor, SIGSTOP), 0);
  ASSERT_TRUE(comes_true([&] {
    const auto facts = os::process_facts(supervisor);
    return facts && facts->is_stopped();
  }));
  for (const int pid : pids_) ASSERT_EQ(::kill(pid, SIGCONT), 0);
  const auto order = order_on_disk();
  const bool is_frozen = order && !order->freeze_cgroup.empty();  // nobody wakes that
  EXPECT_TRUE(comes_true([&] {
    for (const Report& report : runner_->poll()) {
      EXPECT_TRUE(std::holds_alternative<Started>(report)) << "it ended";
    }
    const auto facts = os::process_facts(supervisor);
    return is_frozen || (facts && !facts->is_stopped());
  }));
  EXPECT_TRUE(becomes(true));
  runner_->resume(JobId(7), 1);
  asked_.say("end");
  EXPECT_EQ(wait_gone().exit_code, 7);
}

INSTANTIATE_TEST_SUITE_P(With, Suspend, ::testing::Values(true, false), cgroups_or_not);

class Binding : public RunnerBench {};

TEST_P(Binding, RunsOnTheCpusChosen) {
  LaunchOrder made = order({"/bin/grep", "Cpus_allowed_list", "/proc/self/status"});
  made.cpus = {0};
  EXPECT_EQ(run(made).exit_code, 0);
  EXPECT_EQ(log(), "Cpus_allowed_list:\t0\n");
}

TEST_P(Binding, ACpuThatIsNotThereDoesNotKeepItFromRunning) {
  LaunchOrder made = order({"/bin/echo", "ran"});
  made.cpus = {8000};
  EXPECT_EQ(run(made).exit_code, 0);
  EXPECT_EQ(log(), "gflow: not bound to its CPUs: Invalid argument\nran\n");
}

INSTANTIATE_TEST_SUITE_P(With, Binding, ::testing::Values(true, false), cgroups_or_not);

}  // namespace
}  // namespace gflow::runner
