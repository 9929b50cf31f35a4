// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <cstdint>
#include <utility>

#include "runner/attempt_files.h"
#include "runner/test_bench.h"

namespace gflow::runner {
namespace {

using End = RunnerBench;
using std::chrono::seconds;

/// A process in a session of its own that ignores SIGTERM and says its pid.
const std::string kStubbornGrandchild =
    "setsid sh -c 'trap \"\" TERM HUP; echo $$ > ready; while :; do sleep 1000; done' & ";

TEST_P(End, AtItsTimeLimit) {
  LaunchOrder made = script("echo begun; sleep 1000");
  made.time_limit = seconds(1);
  made.grace = seconds(60);
  const Outcome outcome = run(made);
  EXPECT_EQ(outcome.reason, EndReason::TimeLimit);
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_GE(outcome.run_time, seconds(1));
  EXPECT_EQ(log(), "begun\n");
}

TEST_P(End, TheLimitCanBeChanged) {
  Fifo go = fifo("go");
  LaunchOrder limited = script("read x < go; exit 7");
  limited.time_limit = seconds(1);
  launch(limited);
  runner_->change_limit(limited.job, 1, std::nullopt, {});
  LaunchOrder other = script("sleep 1000");
  other.job = JobId(8);
  launch(other);
  runner_->change_limit(other.job, 1, seconds(2), {});
  EXPECT_EQ(wait_gone(other.job).reason, EndReason::TimeLimit);
  // By now the first limit would have ended the first job.
  go.say("on");
  EXPECT_EQ(wait_gone(limited.job).exit_code, 7);
}

TEST_P(End, OnRequestThoughItsSupervisorIsStopped) {
  launch(script("sleep 1000"));
  const auto facts = os::process_facts(wait_started());
  ASSERT_TRUE(facts);
  ASSERT_EQ(::kill(facts->parent, SIGSTOP), 0);
  for (auto now = os::process_facts(facts->parent); now && now->state != 'T';) {
    now = os::process_facts(facts->parent);
  }
  runner_->stop(JobId(7), 1, SIGTERM, EndReason::Cancelled);
  EXPECT_EQ(wait_gone().reason, EndReason::Cancelled);
}

TEST_P(End, OnRequestWithTheSignalAsked) {
  const struct {
    const char* name;
    int asked;
    const char* trap;
    int exit_code;
    int signal;
  } kTable[] = {
      {"SIGTERM when none is named", 0, "trap 'exit 5' TERM", 5, 0},
      {"USR1", SIGUSR1, "trap 'exit 6' USR1", 6, 0},
      {"default action", SIGINT, "trap - INT", 0, SIGINT},
      {"at once", SIGKILL, "trap '' TERM", 0, SIGKILL},
  };
  JobId job(20);
  for (const auto& row : kTable) {
    Fifo ready = fifo("ready");
    LaunchOrder made = script(std::string(row.trap) + "; echo r > ready; read x < never");
    Fifo never = fifo("never");
    made.job = job;
    made.grace = seconds(60);
    ++job.value;
    launch(made);
    EXPECT_EQ(ready.line(), "r");
    runner_->stop(made.job, 1, row.asked, EndReason::Cancelled);
    const Outcome outcome = wait_gone(made.job);
    EXPECT_EQ(outcome.reason, EndReason::Cancelled) << row.name;
    EXPECT_EQ(outcome.exit_code, row.exit_code) << row.name;
    EXPECT_EQ(outcome.signal, row.signal) << row.name;
  }
}

TEST_P(End, IgnoringSigtermHelpsUntilGraceIsOver) {
  Fifo ready = fifo("ready");
  LaunchOrder made = script("trap '' TERM; echo r > ready; while :; do sleep 1000; done");
  made.grace = seconds(1);
  launch(made);
  EXPECT_EQ(ready.line(), "r");
  runner_->stop(made.job, 1, 0, EndReason::TimeLimit);
  runner_->stop(made.job, 1, 0, EndReason::Cancelled);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::TimeLimit);  // the first reason stays
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_GE(outcome.run_time, seconds(1));
}

TEST_P(End, ASecondRequestCanBeHarder) {
  Fifo ready = fifo("ready");
  LaunchOrder made = script("trap '' TERM; echo r > ready; while :; do sleep 1000; done");
  made.grace = seconds(3600);
  launch(made);
  EXPECT_EQ(ready.line(), "r");
  runner_->stop(made.job, 1, 0, EndReason::Cancelled);
  runner_->stop(made.job, 1, SIGKILL, EndReason::Cancelled);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Cancelled);
  EXPECT_EQ(outcome.signal, SIGKILL);
}

TEST_P(End, ARequestTheKernelHasNoRoomForIsRepeated) {
  Fifo ready = fifo("ready");
  Fifo never = fifo("never");
  LaunchOrder made = script("trap 'exit 5' TERM; echo $$ > ready; read x < never");
  made.grace = seconds(60);
  launch(made);
  const int shim = shim_of(ready.number());
  (void)wait_started();  // from here on only the repetition makes fd() readable
  rlimit limit{};
  ASSERT_EQ(::prlimit(shim, RLIMIT_SIGPENDING, nullptr, &limit), 0);
  const rlim_t before = std::exchange(limit.rlim_cur, 0);  // the soft one can be raised again
  ASSERT_EQ(::prlimit(shim, RLIMIT_SIGPENDING, &limit, nullptr), 0);
  runner_->stop(JobId(7), 1, 0, EndReason::Cancelled);
  limit.rlim_cur = before;
  ASSERT_EQ(::prlimit(shim, RLIMIT_SIGPENDING, &limit, nullptr), 0);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Cancelled);
  EXPECT_EQ(outcome.exit_code, 5);
}

TEST_P(End, ASupervisorToldToEndEndsTheJobFirst) {
  launch(script("sleep 1000"));
  const int pid = wait_started();
  const os::Fd first = hold(pid);
  ASSERT_EQ(::kill(shim_of(pid), SIGTERM), 0);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Cancelled);
  EXPECT_NE(outcome.message.find("SIGTERM"), std::string::npos) << outcome.message;
  EXPECT_TRUE(has_ended(first));
}

TEST_P(End, StoppedProcessesAreEndedToo) {
  Fifo ready = fifo("ready");
  launch(script("echo r > ready; kill -STOP $$"));
  EXPECT_EQ(ready.line(), "r");
  runner_->stop(JobId(7), 1, 0, EndReason::Cancelled);
  EXPECT_EQ(wait_gone().reason, EndReason::Cancelled);
}

TEST_P(End, BeforeTheShimHasTakenItOrAfterNothingStaysBehind) {
  for (std::uint64_t job = 30; job < 50; ++job) {
    LaunchOrder made = script("sleep 1000");
    made.job = JobId(job);
    launch(made);
    runner_->stop(made.job, 1, 0, EndReason::Cancelled);
  }
  for (std::uint64_t job = 30; job < 50; ++job) {
    EXPECT_EQ(wait_gone(JobId(job)).reason, EndReason::Cancelled) << job;
  }
}

TEST_P(End, WhatIsBornWhileTheJobIsToldIsToldToo) {
  Fifo ready = fifo("ready");
  // Not by bash, which may note a signal just before it becomes `sleep` and never look at it.
  LaunchOrder made = script(
      "#!/bin/dash\nfor i in $(seq 30); do (for j in $(seq 30); do sleep 1000 & done; wait) & done;"
      "echo r > ready; wait");
  made.grace = seconds(60);
  launch(made);
  EXPECT_EQ(ready.line(), "r");
  runner_->stop(made.job, 1, 0, EndReason::Cancelled);
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_LT(outcome.run_time, made.grace) << "one was not told, and killed when its time was up";
}

TEST_P(End, WhatAJobStartsToCleanUpIsNotTold) {
  Fifo ready = fifo("ready");
  LaunchOrder made = script(
      "trap 'for i in $(seq 200); do /bin/true || exit 9; done; exit 6' TERM;"
      "echo r > ready; while :; do sleep 1000; done");
  made.grace = seconds(3600);
  launch(made);
  EXPECT_EQ(ready.line(), "r");
  runner_->stop(made.job, 1, 0, EndReason::Cancelled);
  EXPECT_EQ(wait_gone().exit_code, 6);
}

TEST_P(End, ProcessesThatLeftTheSessionAreKilledWithTheJob) {
  Fifo ready = fifo("ready");
  launch(script(kStubbornGrandchild + "wait"));
  const os::Fd grandchild = hold(ready.number());
  runner_->stop(JobId(7), 1, 0, EndReason::Cancelled);
  EXPECT_EQ(wait_gone().reason, EndReason::Cancelled);
  EXPECT_TRUE(has_ended(grandchild));
}

TEST_P(End, WhatTheProgramLeavesBehindIsEnded) {
  Fifo ready = fifo("ready");
  Fifo go = fifo("go");
  launch(script(kStubbornGrandchild + "read x < go; exit 4"));
  const os::Fd grandchild = hold(ready.number());
  go.say("on");
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Exited);
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_TRUE(has_ended(grandchild));
}

TEST_P(End, ManyProcessesThatFork) {
  Fifo ready = fifo("ready");
  launch(
      script("trap '' TERM; for i in $(seq 100); do setsid sh -c "
             "'trap \"\" TERM; while :; do sleep 0.01; done' & done; echo r > ready; wait"));
  EXPECT_EQ(ready.line(), "r");
  runner_->stop(JobId(7), 1, 0, EndReason::Cancelled);
  EXPECT_EQ(wait_gone().reason, EndReason::Cancelled);
  const auto order = AttemptFiles(options_.attempts_dir, JobId(7), 1).order().value();
  ASSERT_TRUE(order);
  EXPECT_TRUE(survivors_of(traces_of(*order)).value().empty());
}

TEST_P(End, CpuTimeIsCounted) {
  const Outcome outcome = run(script("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_GT(outcome.cpu_time.count(), 0);
}

TEST_P(End, AtTheMemoryLimit) {
  if (runner_->enforcement("").memory.starts_with("none")) {
    GTEST_SKIP() << "memory " << runner_->enforcement("").memory;
  }
  LaunchOrder made = script("exec head -c 1000000000 /dev/zero | tail -c 999999999 > /dev/null");
  made.limits.memory = Memory::mib(64);
  const Outcome outcome = run(made);
  EXPECT_EQ(outcome.reason, EndReason::OutOfMemory) << outcome.exit_code;
  EXPECT_LE(outcome.peak_memory, Memory::mib(65));
}

INSTANTIATE_TEST_SUITE_P(Kill, End, ::testing::Bool(), cgroups_or_not);

}  // namespace
}  // namespace gflow::runner
