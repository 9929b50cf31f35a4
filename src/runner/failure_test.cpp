// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "attempt/exit_record.h"
#include "base/kept_sentence.h"
#include "runner/attempt_files.h"
#include "runner/spawn.h"
#include "runner/test_bench.h"

/// A machine in trouble: no fault of it ends a job, and what cannot be found out is not judged.
namespace gflow::runner {
namespace {

/// While it lives nothing can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    (void)::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = STDERR_FILENO + 1;  // those are open
    (void)::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { (void)::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

class Trouble : public RunnerBench {
 protected:
  [[nodiscard]] Adoption adopt(Runner::Progress progress = Runner::Progress::Started) {
    return runner_->adopt(JobId(7), 1, options_.boot_id, progress);
  }
};

TEST_P(Trouble, OfTheMachineIsNotTheJobs) {
  const std::string attempts = path("attempts");
  const std::string shim = options_.shim;
  std::filesystem::rename(attempts, path("elsewhere"));
  ASSERT_TRUE(os::write_file(attempts, "not a directory"));
  const Outcome unusable = run(order({"true"}));
  EXPECT_EQ(unusable.reason, EndReason::NotStarted) << unusable.message;
  EXPECT_EQ(unusable.failure, (Failure{FailureKind::Node, "write the launch order", ENOTDIR}));
  runner_->forget(JobId(7), 1);
  std::filesystem::remove(attempts);
  std::filesystem::rename(path("elsewhere"), attempts);
  {
    const NoDescriptors none;
    const Outcome outcome = run(order({"true"}));
    EXPECT_EQ(outcome.reason, EndReason::NotStarted) << outcome.message;
    EXPECT_EQ(outcome.failure.kind, FailureKind::Node) << outcome.message;
    EXPECT_EQ(outcome.failure.error, EMFILE) << outcome.message;
  }
  runner_->forget(JobId(7), 1);
  EXPECT_EQ(run(order({"true"})).reason, EndReason::Exited);
}

TEST_P(Trouble, AnAbsentSupervisorIsTheMachines) {
  const std::string shim = path("gflow-shim");
  std::filesystem::copy_file(options_.shim, shim);
  options_.shim = shim;
  reopen();
  std::filesystem::rename(shim, path("put away"));
  (void)run(order({"true"}));  // may be taken by one that was kept ready
  runner_->forget(JobId(7), 1);
  const Outcome outcome = run(order({"true"}));
  EXPECT_EQ(outcome.reason, EndReason::NotStarted);
  EXPECT_EQ(outcome.failure, (Failure{FailureKind::Node, "start the supervisor", ENOENT}))
      << outcome.message;
  runner_->forget(JobId(7), 1);
  std::filesystem::rename(path("put away"), shim);
  EXPECT_EQ(run(order({"true"})).reason, EndReason::Exited);
}

TEST_P(Trouble, AGroupOfThatNameDoesNotKeepAJobFromRunning) {
  if (!UsesCgroups()) GTEST_SKIP() << "it has no groups";
  EXPECT_EQ(run(order({"true"})).exit_code, 0);
  const auto groups = AttemptFiles(options_.attempts_dir, JobId(7), 1).order().value()->cgroups;
  if (groups.empty()) GTEST_SKIP() << "no control groups here";
  runner_->forget(JobId(7), 1);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    (void)::pause();
    ::_exit(0);
  }
  for (const std::string& group : groups) {
    ASSERT_EQ(::mkdir(group.c_str(), 0755), 0) << group;
    (void)os::write_file(group + "/cgroup.procs", std::to_string(stranger));
  }
  EXPECT_EQ(run(order({"true"})).reason, EndReason::Exited);
  runner_->forget(JobId(7), 1);
  (void)::kill(stranger, SIGKILL);
  (void)::waitpid(stranger, nullptr, 0);
  for (const std::string& group : groups) {
    EXPECT_EQ(::access((group + "/cgroup.procs").c_str(), F_OK), 0) << "it was not ours to remove";
    (void)::rmdir(group.c_str());
  }
}

TEST_P(Trouble, WhatCannotBeReadIsNotJudged) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 5"));
  const int pid = wait_started();
  reopen();
  {
    const NoDescriptors none;
    const Adoption adoption = adopt();
    ASSERT_TRUE(std::holds_alternative<Unknown>(adoption));
    EXPECT_NE(std::get<Unknown>(adoption).why.find("Too many open files"), std::string::npos);
    ASSERT_EQ(runner_->doubts().size(), 1U);
    EXPECT_EQ(runner_->doubts().front().job, JobId(7));
    EXPECT_TRUE(runner_->poll().empty()) << "still nothing is known";
  }
  const Adoption adoption = wait_adopted();
  const auto* runs = std::get_if<StillRuns>(&adoption);
  ASSERT_NE(runs, nullptr);
  EXPECT_EQ(runs->pid, pid);
  EXPECT_TRUE(runner_->doubts().empty());
  go.say("on");
  EXPECT_EQ(wait_gone().exit_code, 5);
}

TEST_P(Trouble, AnEndThatCannotBeReadIsReadLater) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 5"));
  const os::Fd shim = hold(shim_of(wait_started()));
  go.say("on");
  ASSERT_TRUE(wait_for_end(shim));
  {
    const NoDescriptors none;
    EXPECT_TRUE(runner_->poll().empty()) << "nothing can be known now";
    EXPECT_EQ(runner_->doubts().size(), 1U);
  }
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::Exited);
  EXPECT_EQ(outcome.exit_code, 5);
}

TEST_P(Trouble, ACopyOfTheLockIsNotTheEndOfTheSupervisor) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 5"));
  (void)wait_started();
  reopen();
  // A claim that was damaged: its lock is held, so somebody runs it.
  const std::string claim = path("attempts/7.1/claim");
  const std::string content = read(claim);
  ASSERT_TRUE(os::write_file(claim, "garbage"));
  ASSERT_TRUE(std::holds_alternative<Unknown>(adopt()));
  ASSERT_TRUE(os::write_file(claim, content));
  EXPECT_TRUE(std::holds_alternative<StillRuns>(wait_adopted()));
  go.say("on");
  EXPECT_EQ(wait_gone().exit_code, 5);
}

TEST_P(Trouble, AProcessThatHidesIsFoundWhenItsSupervisorIsKilled) {
  Fifo ready = fifo("ready");
  launch(script("env -i setsid sh -c 'echo $$ > " + path("ready") +
                "; exec sleep 1000' "
                "< /dev/null > /dev/null 2>&1 & wait"));
  const os::Fd hidden = hold(ready.number());
  const int pid = wait_started();
  ASSERT_EQ(::kill(shim_of(pid), SIGKILL), 0);
  EXPECT_EQ(wait_gone().reason, EndReason::SupervisorDied);
  EXPECT_TRUE(has_ended(hidden));
}

TEST_P(Trouble, ARemovedDirectoryIsToldTruthfully) {
  Fifo go = fifo("go");
  Fifo there = fifo("there");
  launch(script("echo > there; read x < go; exit 5"));
  (void)there.line();  // it has read its script
  (void)wait_started();
  std::filesystem::remove_all(path("attempts/7.1"));
  go.say("on");
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::SupervisorDied);
  EXPECT_NE(outcome.message.find("was removed while it ran"), std::string::npos) << outcome.message;
}

TEST_P(Trouble, ASupervisorIsFoundWithoutItsDirectory) {
  Fifo go = fifo("go");
  Fifo there = fifo("there");
  launch(script("echo > there; read x < go; exit 5"));
  (void)there.line();  // it has read its script
  (void)wait_started();
  std::filesystem::remove_all(path("attempts/7.1"));
  reopen();
  ASSERT_TRUE(std::holds_alternative<StillRuns>(adopt()));
  go.say("on");
  EXPECT_EQ(wait_gone().reason, EndReason::SupervisorDied);
}

INSTANTIATE_TEST_SUITE_P(With, Trouble, ::testing::Bool(), cgroups_or_not);

/// gflow-shim has no table of kept sentences: what it writes has the words of the one that reads
/// it.
TEST(Shim, SpeaksInKeptSentences) {
  for (std::uint32_t number = 1; const auto step = attempt::step_of(number); ++number) {
    if (*step == attempt::Step::ReachProgram) continue;  // a sentence of its own
    const std::string words(attempt::step_text(*step));
    EXPECT_TRUE(std::ranges::any_of(kKeptSentences, [&](const KeptSentence& sentence) {
      const std::string_view text = sentence.text;
      return text.starts_with(words) && text.ends_with(": {}");
    })) << words;
  }
}

}  // namespace
}  // namespace gflow::runner
