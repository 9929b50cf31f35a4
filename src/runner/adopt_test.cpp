// SPDX-License-Identifier: Apache-2.0
#include <sys/mount.h>

#include "base/kept_sentence.h"
#include "runner/attempt_files.h"
#include "runner/spawn.h"
#include "runner/test_bench.h"

namespace gflow::runner {
namespace {

using Adopt = RunnerBench;

TEST_P(Adopt, AJobThatRunsIsWatchedAgain) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 3"));
  const int pid = wait_started();
  reopen();
  const Adoption adoption = runner_->adopt(JobId(7), 1, options_.boot_id);
  ASSERT_TRUE(std::holds_alternative<StillRuns>(adoption));
  EXPECT_EQ(std::get<StillRuns>(adoption).pid, pid);
  EXPECT_EQ(runner_->owner_of(pid), JobId(7));
  go.say("on");
  EXPECT_EQ(wait_gone().exit_code, 3);
}

TEST_P(Adopt, AndCanBeStopped) {
  launch(script("sleep 1000"));
  (void)wait_started();
  reopen();
  ASSERT_TRUE(std::holds_alternative<StillRuns>(runner_->adopt(JobId(7), 1, options_.boot_id)));
  runner_->stop(JobId(7), 1, 0, EndReason::Cancelled);
  EXPECT_EQ(wait_gone().reason, EndReason::Cancelled);
}

TEST_P(Adopt, AJobThatEndedMeanwhileIsOver) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 3"));
  const os::Fd shim = hold(shim_of(wait_started()));
  runner_.reset();
  go.say("on");
  ASSERT_TRUE(wait_for_end(shim));
  reap(shim);
  reopen();
  is_over();
  const Adoption adoption = runner_->adopt(JobId(7), 1, options_.boot_id);
  ASSERT_TRUE(std::holds_alternative<Over>(adoption));
  EXPECT_EQ(std::get<Over>(adoption).outcome.exit_code, 3);
  // Its record counts in another boot as well.
  EXPECT_TRUE(std::holds_alternative<Over>(runner_->adopt(JobId(7), 1, "a later boot")));
}

// After a power failure a directory that was another attempt's may have that one's record.
TEST_P(Adopt, ARecordOfAnotherAttemptIsNoneOfIt) {
  launch(order({"sh", "-c", "exit 3"}));
  EXPECT_EQ(wait_gone().exit_code, 3);
  std::filesystem::copy(path("attempts/7.1"), path("attempts/8.1"));
  EXPECT_FALSE(AttemptFiles(options_.attempts_dir, JobId(8), 1).exit_record().value());
  const Adoption adoption = runner_->adopt(JobId(8), 1, "an earlier boot");
  ASSERT_TRUE(std::holds_alternative<Over>(adoption));
  EXPECT_EQ(std::get<Over>(adoption).outcome.reason, EndReason::Rebooted);
}

TEST_P(Adopt, WithoutAClaimItNeverRanAndNeverWill) {
  const AttemptFiles files(options_.attempts_dir, JobId(7), 1);
  attempt::Order late;
  late.job = 7;
  late.attempt = 1;
  late.boot_id = options_.boot_id;
  late.work_dir = directory_;
  late.log_path = runner_->log_path(JobId(7));
  late.argv = {"/bin/touch", path("ran")};
  ASSERT_TRUE(files.create(late, {}));
  EXPECT_TRUE(std::holds_alternative<NeverRan>(runner_->adopt(JobId(7), 1, options_.boot_id)));
  // A shim that comes late finds the claim taken.
  auto shim = spawn_shim(options_.shim, files.directory(), path("shim.log"));
  ASSERT_TRUE(shim);
  ASSERT_TRUE(wait_for_end(shim->process));
  reap(shim->process);
  EXPECT_FALSE(os::exists(path("ran")));
  EXPECT_FALSE(files.exit_record().value());
}

// Supervisors used to make their claim and note the pid in files of their own, and there was
// nothing behind its record.
TEST_P(Adopt, WhatAnOlderSupervisorWroteIsUnderstood) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 3"));
  const int pid = wait_started();
  EXPECT_EQ(AttemptFiles(options_.attempts_dir, JobId(7), 1).started_pid().value(), pid);
  const std::string place = path("attempts/7.1");
  const auto claim = os::read_file(place + "/claim");
  ASSERT_TRUE(claim);
  ASSERT_EQ(::unlink((place + "/claim").c_str()), 0);
  ASSERT_TRUE(os::write_file(place + "/claim", *claim));
  ASSERT_EQ(::truncate((place + "/lock").c_str(), 0), 0);
  ASSERT_EQ(::truncate((place + "/exit").c_str(), attempt::kExitFileSize), 0);
  ASSERT_TRUE(os::write_file(place + "/started", std::to_string(pid) + "\n"));
  reopen();
  const Adoption adoption = runner_->adopt(JobId(7), 1, options_.boot_id);
  ASSERT_TRUE(std::holds_alternative<StillRuns>(adoption));
  EXPECT_EQ(std::get<StillRuns>(adoption).pid, pid);
  go.say("");
  EXPECT_EQ(wait_gone().exit_code, 3);
}

TEST_P(Adopt, WhatCannotBeTakenBackBySharedFileIsTakenBackByItsOwn) {
  const AttemptFiles files(options_.attempts_dir, JobId(7), 1);
  attempt::Order order;
  order.argv = {"true"};
  ASSERT_TRUE(files.create(order, {}));
  ASSERT_EQ(::unlink(path("attempts/revoked").c_str()), 0);
  EXPECT_TRUE(std::holds_alternative<NeverRan>(runner_->adopt(JobId(7), 1, options_.boot_id)));
  EXPECT_TRUE(std::holds_alternative<attempt::Revoked>(*files.claim().value()));
}

TEST_P(Adopt, WithoutADirectoryItNeverRan) {
  EXPECT_TRUE(std::holds_alternative<NeverRan>(runner_->adopt(JobId(9), 1, options_.boot_id)));
}

TEST_P(Adopt, OfAnotherBootItIsLost) {
  const Adoption adoption = runner_->adopt(JobId(9), 1, "an earlier boot");
  ASSERT_TRUE(std::holds_alternative<Over>(adoption));
  EXPECT_EQ(std::get<Over>(adoption).outcome.reason, EndReason::Rebooted);
}

const std::string kGrandchild = "setsid sh -c 'trap \"\" TERM; echo $$ > ready; sleep 1000' & ";

TEST_P(Adopt, WhenTheShimIsKilledTheJobEndsWithIt) {
  Fifo ready = fifo("ready");
  launch(script(kGrandchild + "wait"));
  const os::Fd grandchild = hold(ready.number());
  const int pid = wait_started();
  const os::Fd first = hold(pid);
  ASSERT_EQ(::kill(shim_of(pid), SIGKILL), 0);
  EXPECT_EQ(wait_gone().reason, EndReason::SupervisorDied);
  EXPECT_TRUE(has_ended(first));
  EXPECT_TRUE(has_ended(grandchild));
}

TEST_P(Adopt, WhenTheShimWasKilledWhileTheDaemonWasDownToo) {
  Fifo ready = fifo("ready");
  launch(script(kGrandchild + "wait"));
  const os::Fd grandchild = hold(ready.number());
  const int shim_pid = shim_of(wait_started());
  const os::Fd shim = hold(shim_pid);
  runner_.reset();
  ASSERT_EQ(::kill(shim_pid, SIGKILL), 0);
  ASSERT_TRUE(wait_for_end(shim));
  reap(shim);
  reopen();
  const Adoption adoption = runner_->adopt(JobId(7), 1, options_.boot_id);
  ASSERT_FALSE(std::holds_alternative<NeverRan>(adoption));
  if (const auto* over = std::get_if<Over>(&adoption)) {
    is_over();
    EXPECT_EQ(over->outcome.reason, EndReason::SupervisorDied);
  } else {
    EXPECT_EQ(wait_gone().reason, EndReason::SupervisorDied);
  }
  EXPECT_TRUE(has_ended(grandchild));
}

TEST_P(Adopt, WhatRunsUnderTheDirectoryThisIsACopyOfIsLeftAlone) {
  Fifo go = fifo("go");
  launch(script("read x < go; exit 3"));
  const int pid = wait_started();
  std::filesystem::copy(path("attempts"), path("copied"), std::filesystem::copy_options::recursive);
  Options copied = options_;
  copied.attempts_dir = path("copied");
  auto other = Runner::open(copied);
  ASSERT_TRUE(other) << other.error().message;
  const Adoption adoption = (*other)->adopt(JobId(7), 1, options_.boot_id);
  ASSERT_TRUE(std::holds_alternative<Over>(adoption));
  EXPECT_EQ(std::get<Over>(adoption).outcome.message, kept<Kept::RunsElsewhere>(shim_of(pid)));
  (*other)->forget(JobId(7), 1);
  EXPECT_FALSE(os::exists(path("copied/7.1")));
  other->reset();
  go.say("on");
  EXPECT_EQ(wait_gone().exit_code, 3);
}

TEST_P(Adopt, AClaimThatMakesNoSenseIsNotRunAgain) {
  const AttemptFiles files(options_.attempts_dir, JobId(7), 1);
  attempt::Order order;
  order.argv = {"true"};
  ASSERT_TRUE(files.create(order, {}));
  ASSERT_TRUE(os::write_file(files.directory() + "/claim", std::string("\0garbage\xff", 9)));
  const Adoption adoption = runner_->adopt(JobId(7), 1, options_.boot_id);
  ASSERT_TRUE(std::holds_alternative<Over>(adoption));
  EXPECT_EQ(std::get<Over>(adoption).outcome.reason, EndReason::SupervisorDied);
}

TEST_P(Adopt, SweepRemovesWhatIsOverAndLeavesWhatRuns) {
  EXPECT_EQ(run(script("true")).exit_code, 0);
  LaunchOrder running = script("sleep 1000");
  running.job = JobId(8);
  launch(running);
  (void)wait_started(JobId(8));
  reopen();
  runner_->sweep({});
  EXPECT_FALSE(os::exists(path("attempts/7.1")));
  EXPECT_TRUE(os::exists(path("attempts/8.1")));
  EXPECT_TRUE(std::holds_alternative<StillRuns>(runner_->adopt(JobId(8), 1, options_.boot_id)));
}

TEST_P(Adopt, ForgetLeavesNothingBehind) {
  EXPECT_EQ(run(script("true")).exit_code, 0);
  const auto order = AttemptFiles(options_.attempts_dir, JobId(7), 1).order().value();
  ASSERT_TRUE(order);
  runner_->forget(JobId(7), 1);
  EXPECT_FALSE(os::exists(path("attempts/7.1")));
  for (const std::string& cgroup : order->cgroups) EXPECT_FALSE(os::exists(cgroup)) << cgroup;
}

TEST_P(Adopt, OwnersAreFoundByAncestors) {
  Fifo ready = fifo("ready");
  launch(script(kGrandchild + "wait"));
  EXPECT_EQ(runner_->owner_of(ready.number()), JobId(7));
  EXPECT_EQ(runner_->owner_of(::getpid()), std::nullopt);
  EXPECT_EQ(runner_->owner_of(1), std::nullopt);
}

TEST_P(Adopt, AFullDiskDoesNotLoseTheRecord) {
  const std::string disk = path("attempts");
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "a small file system cannot be mounted here: "
                 << os::errno_error("mount").error().message;
  }
  const Outcome outcome = run(script("cat /dev/zero > $HERE/attempts/fill; exit 3"));
  EXPECT_TRUE(os::is_file(disk + "/fill"));
  runner_->forget(JobId(7), 1);
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
  EXPECT_EQ(outcome.reason, EndReason::Exited) << outcome.message;
  EXPECT_EQ(outcome.exit_code, 3);
}

INSTANTIATE_TEST_SUITE_P(Kill, Adopt, ::testing::Bool(), cgroups_or_not);

}  // namespace
}  // namespace gflow::runner
