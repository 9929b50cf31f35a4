// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "attempt/control.h"
#include "attempt/order.h"
#include "runner/attempt_files.h"
#include "runner/processes.h"
#include "runner/test_bench.h"
#include "runner/traced_process.h"

/// Jobs that stop their supervisor, which holds their time limit and their grace.
namespace gflow::runner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A limit the supervisor does not come to; the daemon does where it is told so.
constexpr seconds kHour{3600};
const std::string kStopsIt = "kill -STOP $PPID; ";

/// While it lives about so many more descriptors can be had; one is one and no second one.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t count) {
    (void)::getrlimit(RLIMIT_NOFILE, &before_);
    const os::Fd lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest.get()) + count;
    (void)::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { (void)::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

/// While it lives nothing can be queued for a process, as if the queue of its user were full: the
/// kernel goes by the limit of who is sent to.
class FullQueue {
 public:
  explicit FullQueue(int pid) : pid_(pid) {
    (void)::prlimit(pid_, RLIMIT_SIGPENDING, nullptr, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    EXPECT_EQ(::prlimit(pid_, RLIMIT_SIGPENDING, &none, nullptr), 0);
  }
  ~FullQueue() { (void)::prlimit(pid_, RLIMIT_SIGPENDING, &before_, nullptr); }
  FullQueue(const FullQueue&) = delete;
  FullQueue& operator=(const FullQueue&) = delete;

 private:
  int pid_;
  rlimit before_{};
};

class Overdue : public RunnerBench {
 protected:
  void SetUp() override {
    options_.end_patience = milliseconds(100);
    RunnerBench::SetUp();
  }
  [[nodiscard]] LaunchOrder limited(const std::string& text, seconds limit) const {
    LaunchOrder made = script(text);
    made.time_limit = limit;
    return made;
  }
  [[nodiscard]] static bool is_stopped(int pid) {
    const auto facts = os::process_facts(pid);
    return facts && facts->is_stopped();
  }
  static void stop_supervisor(int pid) {
    ASSERT_EQ(::kill(pid, SIGSTOP), 0);
    for (auto its = os::process_facts(pid); its && !its->is_stopped() && !its->is_dead();) {
      its = os::process_facts(pid);
    }
  }
  /// Until the runner has looked so often at what it looks at each `end_patience`.
  template <typename Before>
  void let_look(int times, Before before) {
    for (int i = 0; i < times; ++i) {
      const auto due = std::chrono::steady_clock::now() + options_.end_patience;
      do {
        before();
        pollfd wait{runner_->fd(), POLLIN, 0};
        (void)::poll(&wait, 1, static_cast<int>(options_.end_patience.count()));
        for (Report& report : runner_->poll()) reports_.push_back(std::move(report));
      } while (std::chrono::steady_clock::now() <= due);
    }
  }
  /// As if its first process had not been noted yet.
  [[nodiscard]] std::string unnote_first_process() {
    EXPECT_EQ(::truncate(path("attempts/7.1/exit").c_str(), attempt::kExitFileSize), 0);
    return path("attempts/7.1/started");
  }
  /// Of a job more than there are descriptors for.
  [[nodiscard]] Outcome launch_until_one_is_refused() {
    LaunchOrder made = script("sleep 1000");
    std::optional<Report> report;
    do {
      ++made.job.value;
      launch(made);
      report = next(made.job);
    } while (report && std::holds_alternative<Started>(*report));
    std::erase(open_, std::pair(made.job, made.attempt));
    if (!report || !std::holds_alternative<Gone>(*report)) return {};
    Outcome refused = std::get<Gone>(*report).outcome;
    EXPECT_EQ(refused.failure, (Failure{FailureKind::Node, "start the supervisor", EMFILE}));
    EXPECT_GE(open_.size(), 3U) << "it is not so that none can run";
    return refused;
  }
  /// For so long time passes for all: until another job has ended at its limit.
  void let_pass(seconds limit) {
    LaunchOrder other = limited("sleep 1000", limit);
    other.job = JobId(99);
    EXPECT_EQ(run(other).reason, EndReason::TimeLimit);
    runner_->forget(other.job, 1);
  }
};

TEST_P(Overdue, AJobThatStopsItsSupervisorEndsAtItsLimit) {
  Fifo go = fifo("go");
  launch(limited("read x < go; " + kStopsIt + "sleep 1000", kHour));
  (void)wait_started();
  runner_->change_limit(JobId(7), 1, kHour, kHour - seconds(1));
  go.say("on");
  EXPECT_EQ(wait_gone().reason, EndReason::TimeLimit);
}

TEST_P(Overdue, AJobThatSendsItsSupervisorTheDaemonsSignalsIsNotObeyed) {
  launch(limited("for i in 40 41 42 43; do kill -$i $PPID; done; sleep 1000", seconds(1)));
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::TimeLimit) << outcome.message;
  EXPECT_GE(outcome.run_time, seconds(1));
}

/// Who writes such an order itself can write another's pid beside it.
TEST_P(Overdue, AForgedOrderDoesNotTakeItsLimitAway) {
  launch(limited("sleep 1000", seconds(1)));
  const int supervisor = shim_of(wait_started());
  const attempt::ControlSignal no_limit = attempt::encode_control(attempt::SetLimit{});
  siginfo_t info{};
  info.si_signo = no_limit.number;
  info.si_code = SI_QUEUE;
  info.si_pid = 1;
  info.si_value.sival_int = no_limit.value;
  ASSERT_EQ(::syscall(SYS_rt_sigqueueinfo, supervisor, no_limit.number, &info), 0);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::TimeLimit) << outcome.message;
  EXPECT_GE(outcome.run_time, seconds(1));
}

TEST_P(Overdue, AJobThatUsesItsGraceIsNotToldTwice) {
  LaunchOrder made =
      limited("trap 'echo told' TERM; while :; do sleep 0.1 & wait; done", seconds(1));
  made.grace = seconds(1);
  const Outcome outcome = run(made);
  EXPECT_EQ(outcome.reason, EndReason::TimeLimit) << outcome.message;
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_EQ(log(), "told\n");
}

/// Its supervisor runs, and is not about to end it: it counts another grace.
TEST_P(Overdue, AJobThatRunsOnPastItsGraceIsKilledWithItsSupervisor) {
  LaunchOrder made = script("trap '' TERM; echo > ready; while :; do sleep 1000; done");
  made.grace = kHour;
  Fifo ready = fifo("ready");
  launch(made);
  (void)ready.line();
  const os::Fd first = hold(wait_started());
  auto order = AttemptFiles(options_.attempts_dir, JobId(7), 1).order().value().value();
  order.grace = seconds(0);
  const std::string file = path("attempts/7.1/order");
  ASSERT_EQ(::unlink(file.c_str()), 0);
  ASSERT_TRUE(os::write_file(file, attempt::encode_order(order).value()));
  for (const bool patient : {true, false}) {
    options_.kill_patience = patient ? kHour : milliseconds(0);
    reopen();
    ASSERT_TRUE(std::holds_alternative<StillRuns>(runner_->adopt(JobId(7), 1, options_.boot_id)));
    runner_->stop(JobId(7), 1, 0, EndReason::Cancelled);
    if (patient) let_look(5, [] {});
    EXPECT_TRUE(reports_.empty());
  }
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Cancelled);
  EXPECT_NE(outcome.message.find("ran on long after its grace"), std::string::npos)
      << outcome.message;
  EXPECT_TRUE(has_ended(first));
}

/// No order finds a place in the kernel's queue: a job of the same user can fill that.
TEST_P(Overdue, ASupervisorThatCannotBeGivenOrdersEndsItsJob) {
  launch(script("sleep 1000"));
  const FullQueue full(shim_of(wait_started()));
  runner_->stop(JobId(7), 1, SIGUSR1, EndReason::Preempted);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Cancelled);
  EXPECT_NE(outcome.message.find("told to end (SIGTERM)"), std::string::npos) << outcome.message;
}

TEST_P(Overdue, AnOrderThatComesAfterTheSignalGivesTheReason) {
  Fifo said = fifo("said");
  LaunchOrder made = script(
      "trap 'echo told > said' TERM; trap 'exit 5' USR1; echo ready > said\n"
      "while :; do sleep 0.1 & wait; done");
  made.grace = kHour;
  launch(made);
  const int supervisor = shim_of(wait_started());
  EXPECT_EQ(said.line(), "ready");
  {
    const FullQueue full(supervisor);
    runner_->stop(JobId(7), 1, SIGUSR1, EndReason::Preempted);
    EXPECT_EQ(said.line(), "told");
  }
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Preempted) << outcome.message;
  EXPECT_EQ(outcome.message, "");
  EXPECT_EQ(outcome.exit_code, 5);
}

TEST_P(Overdue, AfterTheDaemonWasRestarted) {
  launch(limited("sleep 1000", kHour));
  const int supervisor = shim_of(wait_started());
  reopen();
  ASSERT_TRUE(std::holds_alternative<StillRuns>(runner_->adopt(JobId(7), 1, options_.boot_id)));
  runner_->change_limit(JobId(7), 1, kHour, kHour - seconds(1));
  stop_supervisor(supervisor);
  EXPECT_EQ(wait_gone().reason, EndReason::TimeLimit);
}

TEST_P(Overdue, ItsGraceEndsThoughItStopsItsSupervisorInIt) {
  const struct {
    EndReason why;
    seconds limit;
  } kTable[] = {
      {EndReason::TimeLimit, seconds(1)},
      {EndReason::Cancelled, seconds(0)},
      {EndReason::Preempted, seconds(0)},
  };
  Fifo said = fifo("said");
  JobId job(20);
  for (const auto& row : kTable) {
    LaunchOrder made =
        script("trap 'kill -STOP $PPID' TERM; echo r > said; while :; do sleep 1000 & wait; done");
    made.job = job;
    made.grace = seconds(1);
    if (row.limit.count() > 0) made.time_limit = row.limit;
    launch(made);
    EXPECT_EQ(said.line(), "r");
    if (row.limit.count() == 0) runner_->stop(job, 1, 0, row.why);
    const Outcome outcome = wait_gone(job);
    EXPECT_EQ(outcome.reason, row.why) << outcome.message;
    EXPECT_EQ(outcome.signal, SIGKILL);
    EXPECT_GE(outcome.run_time, seconds(1));
    ++job.value;
  }
}

TEST_P(Overdue, AJobThatStopsItsSupervisorAgainAndAgainEndsToo) {
  for (const bool limited : {true, false}) {
    Fifo said = fifo("said");
    LaunchOrder made = script(
        "trap '' TERM\n"
        "while :; do kill -STOP $PPID; done & echo $! > said\n"
        "wait");
    made.job = JobId(limited ? 30 : 31);
    made.grace = seconds(0);
    if (limited) made.time_limit = seconds(1);
    launch(made);
    const os::Fd stopper = hold(said.number());
    if (!limited) runner_->stop(made.job, 1, 0, EndReason::Cancelled);
    const Outcome outcome = wait_gone(made.job);
    EXPECT_EQ(outcome.reason, limited ? EndReason::TimeLimit : EndReason::Cancelled)
        << outcome.message;
    EXPECT_TRUE(has_ended(stopper));
  }
}

/// A debugger's hold on a supervisor: no signal but SIGKILL makes it go on.
TEST_P(Overdue, ASupervisorThatCannotBeMadeToGoOnIsKilledWithItsJob) {
  launch(limited("trap '' TERM; sleep 1000", seconds(1)));
  const int pid = wait_started();
  const os::Fd first = hold(pid);
  const Traced supervisor(shim_of(pid));
  if (!supervisor.holds()) {
    runner_->stop(JobId(7), 1, SIGKILL, EndReason::Cancelled);
    GTEST_SKIP() << "processes cannot be traced here";
  }
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::TimeLimit);
  EXPECT_NE(outcome.message.find("was killed with it"), std::string::npos) << outcome.message;
  EXPECT_GE(outcome.run_time, seconds(1));
  EXPECT_TRUE(has_ended(first));
}

TEST_P(Overdue, AJobWithoutALimitThatEndsBehindItsStoppedSupervisorIsOver) {
  for (const bool restarted : {false, true}) {
    Fifo go = fifo("go");
    LaunchOrder made = script("read x < go; " + kStopsIt + "exit 3");
    made.job = JobId(restarted ? 41 : 40);
    launch(made);
    (void)wait_started(made.job);
    if (restarted) {
      reopen();
      ASSERT_TRUE(std::holds_alternative<StillRuns>(runner_->adopt(made.job, 1, options_.boot_id)));
    }
    go.say("on");
    const Outcome outcome = wait_gone(made.job);
    EXPECT_EQ(outcome.reason, EndReason::Exited) << outcome.message;
    EXPECT_EQ(outcome.exit_code, 3);
  }
}

TEST_P(Overdue, AJobWithoutALimitThatEndedWhileNobodyWatchedIsOver) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 3"));
  const int pid = wait_started();
  const int supervisor = shim_of(pid);
  const os::Fd first = hold(pid);
  runner_.reset();
  stop_supervisor(supervisor);
  go.say("on");
  ASSERT_TRUE(wait_for_end(first));
  reopen();
  ASSERT_TRUE(std::holds_alternative<StillRuns>(runner_->adopt(JobId(7), 1, options_.boot_id)));
  EXPECT_EQ(wait_gone().exit_code, 3);
}

/// It is about to be watched, and what it is cannot be read.
TEST_P(Overdue, AnErrorIsNotTheEndOfTheFirstProcess) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 3"));
  const int pid = wait_started();
  const int supervisor = shim_of(pid);
  const os::Fd first = hold(pid);
  let_look(1, [] {});  // UBSan opens a pipe where it sees a class for the first time
  {
    const FewDescriptors one(1);
    let_look(2, [] {});
  }
  let_look(5, [&] { stop_supervisor(supervisor); });
  EXPECT_TRUE(reports_.empty());
  EXPECT_FALSE(has_ended(first));
  go.say("on");
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.exit_code, 3) << outcome.message;
}

/// However many more descriptors there are.
TEST_P(Overdue, JobsHaveTheirShareOfDescriptors) {
  let_look(1, [] {});  // UBSan opens a pipe where it sees a class for the first time
  const FewDescriptors few(100);
  const Outcome refused = launch_until_one_is_refused();
  EXPECT_EQ(refused.message.rfind(std::to_string(open_.size()) + " jobs run", 0), 0U)
      << refused.message;
  EXPECT_TRUE(os::check_descriptors(40));
}

/// Under a limit that is lower than before: their supervisors are held, and no more.
TEST_P(Overdue, JobsThatAreTakenOverLeaveDescriptorsToOthers) {
  constexpr int kOthers = 12;
  Fifo go = fifo("go");
  launch(script("read x < go; exit 3"));
  const int pid = wait_started();
  LaunchOrder made = script("sleep 1000");
  for (int i = 0; i < kOthers; ++i) {
    ++made.job.value;
    launch(made);
    (void)wait_started(made.job);
  }
  const int supervisor = shim_of(pid);
  const std::vector<std::pair<JobId, int>> running = open_;
  runner_.reset();
  const FewDescriptors few(70);
  reopen();
  const std::size_t before = os::names_in("/proc/self/fd")->size();
  for (const auto& [job, attempt] : running) {
    const Adoption adoption = runner_->adopt(job, attempt, options_.boot_id);
    EXPECT_TRUE(std::holds_alternative<StillRuns>(adoption)) << job.value;
  }
  let_look(3, [] {});
  EXPECT_EQ(os::names_in("/proc/self/fd")->size(), before + running.size());
  stop_supervisor(supervisor);
  go.say("on");
  EXPECT_EQ(wait_gone().exit_code, 3) << "it is noticed all the same";
}

/// Those that run, what is made ready for the next one, and what is watched later.
TEST_P(Overdue, JobsLeaveDescriptorsToOthers) {
  let_look(1, [] {});  // UBSan opens a pipe where it sees a class for the first time
  std::vector<os::Fd> of_others(300);
  for (os::Fd& one : of_others) one = os::duplicate(STDERR_FILENO);
  const FewDescriptors few(40);
  const Outcome refused = launch_until_one_is_refused();
  EXPECT_NE(refused.message.find(::strerror(EMFILE)), std::string::npos) << refused.message;
  let_look(3, [] {});
  EXPECT_TRUE(os::check_descriptors(4))
      << "for who asks that one ends, and for files that are read";
}

TEST_P(Overdue, AFirstProcessThatWasNotKnownAtTheRestartIsWatchedWhenItIs) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 3"));
  const int pid = wait_started();
  const int supervisor = shim_of(pid);
  const std::string note = unnote_first_process();
  reopen();
  const Adoption adoption = runner_->adopt(JobId(7), 1, options_.boot_id);
  ASSERT_TRUE(std::holds_alternative<StillRuns>(adoption));
  EXPECT_EQ(std::get<StillRuns>(adoption).pid, 0);
  ASSERT_TRUE(os::write_file(note, std::to_string(pid) + "\n"));
  stop_supervisor(supervisor);
  go.say("on");
  EXPECT_EQ(wait_gone().exit_code, 3);
}

TEST_P(Overdue, AFirstProcessThatCannotBeReadAtTheRestartIsNotForgotten) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 3"));
  const int pid = wait_started();
  const int supervisor = shim_of(pid);
  const std::string note = unnote_first_process();
  ASSERT_EQ(::mkdir(note.c_str(), 0700), 0);
  reopen();
  ASSERT_TRUE(std::holds_alternative<Unknown>(runner_->adopt(JobId(7), 1, options_.boot_id)));
  ASSERT_EQ(::rmdir(note.c_str()), 0);
  ASSERT_TRUE(os::write_file(note, std::to_string(pid) + "\n"));
  const Adoption adoption = wait_adopted();
  ASSERT_TRUE(std::holds_alternative<StillRuns>(adoption));
  EXPECT_EQ(std::get<StillRuns>(adoption).pid, pid);
  stop_supervisor(supervisor);
  go.say("on");
  EXPECT_EQ(wait_gone().exit_code, 3);
}

TEST_P(Overdue, WhatAJobLeavesCannotHoldItByStoppingItsSupervisor) {
  Fifo said = fifo("said");
  LaunchOrder made = script(
      "trap '' TERM\n"
      "while :; do kill -STOP $PPID; done & echo $! > said\n"
      "exit 3");
  made.grace = seconds(1);
  launch(made);
  const os::Fd stopper = hold(said.number());
  const Outcome outcome = wait_gone();
  EXPECT_TRUE(outcome.reason == EndReason::Exited || outcome.reason == EndReason::SupervisorDied)
      << outcome.message;
  EXPECT_TRUE(has_ended(stopper));
}

TEST_P(Overdue, AJobThatEndsBehindASupervisorThatCannotGoOnIsOver) {
  Fifo go = fifo("go");
  LaunchOrder made = script("read x < go; exit 3");
  made.grace = kHour;  // nobody is left who could use it
  launch(made);
  const Traced supervisor(shim_of(wait_started()));
  go.say("on");
  if (!supervisor.holds()) GTEST_SKIP() << "processes cannot be traced here";
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::SupervisorDied);
  EXPECT_NE(outcome.message.find("its supervisor was held"), std::string::npos) << outcome.message;
}

TEST_P(Overdue, TimeItIsSuspendedDoesNotCount) {
  launch(script("exec sleep 1000"));
  const int supervisor = shim_of(wait_started());
  runner_->suspend(JobId(7), 1, {});
  const auto order = AttemptFiles(options_.attempts_dir, JobId(7), 1).order().value();
  // In the kernel (D) for a moment, as in execve(2), it may have been told nothing yet.
  const auto is_in_kernel = [](const ProcessFacts& its) { return its.state == 'D'; };
  while (!stands_still(supervisor, order->freeze_cgroup).value() ||
         std::ranges::any_of(processes_below(supervisor).value(), is_in_kernel)) {
  }
  runner_->change_limit(JobId(7), 1, seconds(1), {});
  stop_supervisor(supervisor);
  let_pass(seconds(2));
  EXPECT_TRUE(reports_.empty());
  EXPECT_TRUE(is_stopped(supervisor));
  runner_->resume(JobId(7), 1);
  EXPECT_EQ(wait_gone().reason, EndReason::TimeLimit);
}

TEST_P(Overdue, AChangedLimitIsTheOneThatCounts) {
  launch(script("sleep 1000"));
  const int supervisor = shim_of(wait_started());
  runner_->change_limit(JobId(7), 1, kHour, kHour - seconds(1));
  runner_->change_limit(JobId(7), 1, std::nullopt, {});
  stop_supervisor(supervisor);
  let_pass(seconds(2));
  EXPECT_TRUE(reports_.empty());
  EXPECT_TRUE(is_stopped(supervisor));
  runner_->change_limit(JobId(7), 1, kHour, kHour - seconds(1));
  stop_supervisor(supervisor);
  EXPECT_EQ(wait_gone().reason, EndReason::TimeLimit);
}

TEST_P(Overdue, ASupervisorStoppedWhileItStartsTheJobKeepsItsLimit) {
  options_.launch_patience = milliseconds(100);
  reopen();
  LaunchOrder made = limited("sleep 1000", seconds(1));
  launch(made);
  const AttemptFiles files(options_.attempts_dir, made.job, 1);
  std::optional<attempt::Claim> claim;
  while (!claim) claim = files.claim().value();
  stop_supervisor(std::get<attempt::ShimClaim>(*claim).pid);
  EXPECT_EQ(wait_gone().reason, EndReason::TimeLimit);
}

INSTANTIATE_TEST_SUITE_P(With, Overdue, ::testing::Bool(), cgroups_or_not);

}  // namespace
}  // namespace gflow::runner
