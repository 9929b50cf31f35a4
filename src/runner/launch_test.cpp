// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <set>

#include "base/proc_text.h"
#include "base/text.h"
#include "runner/attempt_files.h"
#include "runner/test_bench.h"

namespace gflow::runner {
namespace {

using Launch = RunnerBench;

TEST_P(Launch, EndsAsTheProgramEnds) {
  const struct {
    const char* name;
    std::string script;
    EndReason reason;
    int exit_code;
    int signal;
  } kTable[] = {
      {"success", "exit 0", EndReason::Exited, 0, 0},
      {"failure", "exit 3", EndReason::Exited, 3, 0},
      {"the largest code", "exit 255", EndReason::Exited, 255, 0},
      {"SIGTERM to itself", "kill -TERM $$", EndReason::Signalled, 0, SIGTERM},
      {"SIGKILL to itself", "kill -KILL $$", EndReason::Signalled, 0, SIGKILL},
      {"SIGTERM to its own group", "kill -TERM 0", EndReason::Signalled, 0, SIGTERM},
      {"a shebang", "#!/bin/sh -e\nfalse\nexit 9", EndReason::Exited, 1, 0},
      {"a shebang with env", "#!/usr/bin/env bash\nexit 12", EndReason::Exited, 12, 0},
      {"bash where there is no shebang", "[[ a == a ]] && exit 4", EndReason::Exited, 4, 0},
      {"an empty script", "", EndReason::Exited, 0, 0},
  };
  JobId job(1);
  for (const auto& row : kTable) {
    LaunchOrder made = script(row.script);
    made.job = job;
    ++job.value;
    const Outcome outcome = run(made);
    EXPECT_EQ(outcome.reason, row.reason) << row.name << ": " << outcome.message;
    EXPECT_EQ(outcome.exit_code, row.exit_code) << row.name;
    EXPECT_EQ(outcome.signal, row.signal) << row.name;
    EXPECT_GT(outcome.peak_memory.bytes, 0) << row.name;
  }
}

TEST_P(Launch, ReportsTheProcessBeforeItsEnd) {
  launch(script("echo $$"));
  const int pid = wait_started();
  EXPECT_GT(pid, 0);
  EXPECT_EQ(wait_gone().exit_code, 0);
  EXPECT_EQ(log(), std::to_string(pid) + "\n");
}

TEST_P(Launch, ArgumentsArriveByteForByte) {
  const Outcome outcome =
      run(order({"printf", "%s|", "", "a b", "'\"$x`", "\xff\xfe", "*", "end"}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(log(), "|a b|'\"$x`|\xff\xfe|*|end|");
}

TEST_P(Launch, LogTakesBothOutputsInOrderAndIsContinuedByTheNextAttempt) {
  LaunchOrder made = script("echo one; echo two >&2; echo three");
  EXPECT_EQ(run(made).exit_code, 0);
  made.attempt = 2;
  EXPECT_EQ(run(made).exit_code, 0);
  EXPECT_EQ(log(), "one\ntwo\nthree\none\ntwo\nthree\n");
}

TEST_P(Launch, ScriptKeepsItsNameAndGetsItsArguments) {
  LaunchOrder made = script("echo \"${0##*/} $# $1 $2\"");
  made.payload.argv = {"some/where/train model.sh", "a", "b c"};
  EXPECT_EQ(run(made).exit_code, 0);
  EXPECT_EQ(log(), "train model.sh 2 a b c\n");
}

TEST_P(Launch, ConfigurationKeepsItsName) {
  LaunchOrder made = script("cat \"$GFLOW_JOB_CONFIG\"; basename \"$GFLOW_JOB_CONFIG\"");
  made.payload.config_name = "run 3.yaml";
  made.payload.config = "lr: 0.1\n";
  EXPECT_EQ(run(made).exit_code, 0);
  EXPECT_EQ(log(), "lr: 0.1\nrun 3.yaml\n");
}

// Enforcement hangs on the order, not on the environment.
TEST_P(Launch, TheOrderSaysWhatWasGranted) {
  Fifo ready = fifo("ready");
  Fifo go = fifo("go");
  LaunchOrder made = script("echo up > ready; read x < go");
  made.node = "lab1";
  made.devices = {{2, "GPU-2", "nvidia", Share::percent(25), Share::whole(), Memory::gib(6)},
                  {5, "", "", Share::whole(), {}, {}}};
  made.mode = GpuMode::Fraction;
  made.limits.cpus = 3;
  launch(made);
  EXPECT_EQ(ready.line(), "up");
  const auto order = AttemptFiles(options_.attempts_dir, made.job, made.attempt).order().value();
  ASSERT_TRUE(order);
  EXPECT_EQ(order->node, "lab1");
  EXPECT_EQ(order->devices,
            (std::vector<attempt::Grant>{{2, 2500, 10'000, 6'442'450'944, "nvidia", "GPU-2"},
                                         {5, 10'000, 0, 0, "", ""}}));
  EXPECT_EQ(order->gpu_mode, "fraction");
  EXPECT_EQ(order->cpu_limit, 3U);
  EXPECT_EQ(order->memory_limit, 0U);
  go.say("");
  EXPECT_EQ(wait_gone().exit_code, 0);
}

/// By which a file is known whatever it is called; 0 if it is not there.
ino_t inode(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

std::set<std::string> names_in(const std::string& directory) {
  const auto names = os::names_in(directory).value();
  return {names.begin(), names.end()};
}

// Making and removing an attempt's files was most of what a short job cost.
TEST_P(Launch, AnAttemptTakesTheFilesOfOneThatIsOver) {
  LaunchOrder first = order({"true", std::string(1000, 'x')});
  launch(first);
  EXPECT_EQ(wait_gone().exit_code, 0);
  const std::vector<std::string> files = {"", "/order", "/lock", "/exit"};
  std::vector<ino_t> before;
  for (const std::string& file : files) before.push_back(inode(path("attempts/7.1" + file)));
  runner_->forget(first.job, first.attempt);
  EXPECT_EQ(inode(path("attempts/7.1")), 0U);
  LaunchOrder second = order({"sh", "-c", "exit 4"});
  second.job = JobId(8);
  launch(second);
  EXPECT_EQ(wait_gone(second.job).exit_code, 4);
  std::vector<ino_t> after;
  for (const std::string& file : files) after.push_back(inode(path("attempts/8.1" + file)));
  EXPECT_EQ(after, before);
}

TEST_P(Launch, WhatAnAttemptTakesOverSaysNothingOfIt) {
  LaunchOrder first = order({"sh", "-c", "exit 3"});
  EXPECT_EQ(run(first).exit_code, 3);
  runner_->forget(first.job, first.attempt);
  Fifo ready = fifo("ready");
  Fifo go = fifo("go");
  LaunchOrder second = order({"sh", "-c", "echo up > ready; read x < go"});
  second.job = JobId(8);
  launch(second);
  EXPECT_EQ(ready.line(), "up");
  const AttemptFiles files(options_.attempts_dir, second.job, 1);
  EXPECT_EQ(files.order().value()->job, 8U);
  EXPECT_FALSE(files.exit_record().value());
  go.say("");
  EXPECT_EQ(wait_gone(second.job).exit_code, 0);
}

TEST_P(Launch, FilesOfAJobThatRunsAreNotTaken) {
  Fifo ready = fifo("ready");
  Fifo go = fifo("go");
  LaunchOrder first = order({"sh", "-c", "echo up > ready; read x < go"});
  launch(first);
  EXPECT_EQ(ready.line(), "up");
  const ino_t its = inode(path("attempts/7.1"));
  LaunchOrder second = order({"true"});
  second.job = JobId(8);
  launch(second);
  EXPECT_EQ(wait_gone(second.job).exit_code, 0);
  EXPECT_NE(inode(path("attempts/8.1")), its);
  go.say("");
  EXPECT_EQ(wait_gone().exit_code, 0);
}

// Users look into the directory of an attempt with a script: the next may be another user's.
TEST_P(Launch, ADirectoryWithAScriptIsRemoved) {
  LaunchOrder first = script("true");
  EXPECT_EQ(run(first).exit_code, 0);
  runner_->forget(first.job, first.attempt);
  EXPECT_EQ(names_in(options_.attempts_dir), (std::set<std::string>{"revoked", "shim.log"}));
}

TEST_P(Launch, WhatWasKeptForTheNextIsRemovedAtTheNextStart) {
  EXPECT_EQ(run(order({"true"})).exit_code, 0);
  runner_->forget(JobId(7), 1);
  EXPECT_EQ(names_in(options_.attempts_dir).size(), 3U);
  reopen();
  EXPECT_EQ(names_in(options_.attempts_dir), (std::set<std::string>{"revoked", "shim.log"}));
}

// An older gflowd, or a copy put back, may have made it.
TEST_P(Launch, ADirectoryThatIsThereIsNotReplacedByASpareOne) {
  EXPECT_EQ(run(order({"true"})).exit_code, 0);
  runner_->forget(JobId(7), 1);
  ASSERT_EQ(::mkdir(path("attempts/8.1").c_str(), 0700), 0);
  LaunchOrder second = order({"true"});
  second.job = JobId(8);
  EXPECT_EQ(run(second).reason, EndReason::NotStarted);
  runner_->forget(second.job, 1);
  EXPECT_NE(inode(path("attempts/8.1")), 0U);
}

/// Supervisors that are kept ready by this process.
std::vector<int> standbys() {
  const std::string own = "/proc/self/task/" + std::to_string(::getpid()) + "/children";
  std::vector<int> found;
  for (const int pid : parse_pids(os::read_file(own).value_or(""))) {
    const auto words = os::read_file("/proc/" + std::to_string(pid) + "/cmdline");
    if (words && words->find("--standby") != std::string::npos) found.push_back(pid);
  }
  return found;
}

// The next of them is launched while the supervisor kept ready for it is still being made.
TEST_P(Launch, EachOfManyAtOnceIsInItsOwnGroupsFromTheStart) {
  constexpr int kJobs = 12;
  for (int i = 1; i <= kJobs; ++i) {
    LaunchOrder one = script("exec cat /proc/self/cgroup > groups-$GFLOW_JOB");
    one.job = JobId(static_cast<std::uint64_t>(i));
    one.payload.environment.push_back("GFLOW_JOB=" + std::to_string(i));
    launch(one);
  }
  for (int i = 1; i <= kJobs; ++i) {
    const JobId job(static_cast<std::uint64_t>(i));
    EXPECT_EQ(wait_gone(job).exit_code, 0) << i;
    const std::string its = read(path("groups-" + std::to_string(i)));
    const auto order = AttemptFiles(options_.attempts_dir, job, 1).order().value();
    ASSERT_TRUE(order);
    for (const std::string& group : order->cgroups) {
      const std::string name = group.substr(group.rfind('/'));
      EXPECT_NE(its.find(name + "\n"), std::string::npos) << group << " is not in\n" << its;
    }
  }
}

TEST_P(Launch, ASupervisorKeptReadyThatWasKilledCostsNoJob) {
  for (const int pid : standbys()) {
    const os::Fd process = hold(pid);
    EXPECT_EQ(::kill(pid, SIGKILL), 0);
    EXPECT_TRUE(wait_for_end(process));
  }
  EXPECT_EQ(run(script("exit 3")).exit_code, 3);
  // This one is told its attempt before it is noticed that it cannot run.
  for (const int pid : standbys()) EXPECT_EQ(::kill(pid, SIGSTOP), 0);
  LaunchOrder second = script("exit 4");
  second.job = JobId(8);
  const std::vector<int> stopped = standbys();
  launch(second);
  for (const int pid : stopped) EXPECT_EQ(::kill(pid, SIGCONT), 0);
  EXPECT_EQ(wait_gone(second.job).exit_code, 4);
}

/// The child of one kept ready that waits to become a job, once it is there.
std::vector<int> recruits_of(int standby) {
  const std::string own = "/proc/" + std::to_string(standby);
  const std::string children = own + "/task/" + std::to_string(standby) + "/children";
  std::vector<int> its;
  while (its.empty() && os::exists(own)) {
    its = parse_pids(os::read_file(children).value_or(""));
  }
  return its;
}

TEST_P(Launch, ASignalToOneKeptReadyIsNotTheNextJobs) {
  for (const int pid : standbys()) {
    std::vector<int> its = recruits_of(pid);
    its.push_back(pid);
    for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGQUIT, SIGPIPE, SIGRTMIN}) {
      for (const int one : its) EXPECT_EQ(::kill(one, signal), 0) << signal;
    }
  }
  const Outcome outcome = run(script("exit 3"));
  EXPECT_EQ(outcome.reason, EndReason::Exited) << outcome.message;
  EXPECT_EQ(outcome.exit_code, 3);
}

TEST_P(Launch, WhatIsSaidOfAJobAtOnceIsNotLost) {
  // The supervisor finds the job and what is said of it at once.
  const std::vector<int> slow = standbys();
  for (const int pid : slow) EXPECT_EQ(::kill(pid, SIGSTOP), 0);
  const LaunchOrder made = script("sleep 1000");
  launch(made);
  runner_->change_limit(made.job, 1, std::chrono::seconds(1), {});
  for (const int pid : slow) EXPECT_EQ(::kill(pid, SIGCONT), 0);
  EXPECT_EQ(wait_gone(made.job).reason, EndReason::TimeLimit);
}

TEST_P(Launch, ASignalToAJobThatIsNotYetItsProgramIsNotLost) {
  std::vector<int> slow;
  for (const int pid : standbys()) std::ranges::copy(recruits_of(pid), std::back_inserter(slow));
  for (const int pid : slow) EXPECT_EQ(::kill(pid, SIGSTOP), 0);
  LaunchOrder made = script("sleep 1000");
  made.grace = std::chrono::seconds(1000);
  launch(made);
  const AttemptFiles files(options_.attempts_dir, made.job, 1);
  while (!files.claim().value()) ::sched_yield();
  // The signal to the job's processes is followed by SIGCONT, which lets the slow one go on.
  runner_->stop(made.job, 1, SIGTERM, EndReason::Cancelled);
  const Outcome outcome = wait_gone(made.job);
  EXPECT_EQ(outcome.reason, EndReason::Cancelled);
  EXPECT_EQ(outcome.signal, SIGTERM);
}

TEST_P(Launch, OneKeptReadyEndsWithTheDaemonAndLeavesNoGroup) {
  std::vector<std::string> groups;
  const std::vector<int> kept = standbys();  // one that is just being made is none yet
  for (const int pid : kept) {
    const auto text = os::read_file("/proc/" + std::to_string(pid) + "/cmdline").value_or("");
    for (const std::string_view word : split(text, '\0')) {
      if (word.starts_with("/sys/fs/cgroup/")) groups.emplace_back(word);
    }
  }
  EXPECT_EQ(groups.empty(), kept.empty());
  runner_.reset();
  EXPECT_TRUE(standbys().empty());
  for (const std::string& group : groups) EXPECT_FALSE(os::exists(group)) << group;
  reopen();
}

// What a job was given before the daemon was restarted is not given to another one.
TEST_P(Launch, PortsStayThoseOfTheJobOverARestart) {
  options_.ports = 8;
  reopen();
  Fifo ready = fifo("ready");
  Fifo go = fifo("go");
  LaunchOrder first = script("echo $GFLOW_PORT_BASE > ready; read x < go");
  launch(first);
  const int given = ready.number();
  reopen();
  ASSERT_TRUE(std::holds_alternative<StillRuns>(runner_->adopt(first.job, 1, options_.boot_id)));
  EXPECT_EQ(runner_->ports(first.job, 1), (PortBlock{given, 8}));
  EXPECT_EQ(runner_->ports(first.job, 2), PortBlock{});
  LaunchOrder second = script("echo $GFLOW_PORT_BASE > ready");
  second.job = JobId(8);
  launch(second);
  const int next = ready.number();
  EXPECT_TRUE(next >= given + 8 || next + 8 <= given) << given << " and " << next;
  EXPECT_EQ(wait_gone(second.job).exit_code, 0);
  go.say("");
  EXPECT_EQ(wait_gone(first.job).exit_code, 0);
}

TEST_P(Launch, StartsFromACleanState) {
  // What a daemon may be like: signals ignored and blocked, descriptors open that survive exec.
  const auto old_chld = ::signal(SIGCHLD, SIG_IGN);
  const auto old_hup = ::signal(SIGHUP, SIG_IGN);
  const int leak = ::open("/dev/null", O_RDONLY);
  const std::string leaked = "/proc/self/fd/" + std::to_string(leak);
  LaunchOrder made =
      script("pwd; umask; ls /proc/$$/fd | head -3 | tr '\\n' ' '; test -e " + leaked +
             " && echo leak; readlink /proc/self/fd/0; test \"$(ps -o sid= -p $$)\" -eq $$ && "
             "echo session; exit 6");
  made.payload.umask = 0027;
  LaunchOrder signals = order({"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"});
  signals.job = JobId(8);
  const Outcome outcome = run(made);
  const Outcome second = run(signals);
  (void)::signal(SIGCHLD, old_chld);
  (void)::signal(SIGHUP, old_hup);
  (void)::close(leak);
  EXPECT_EQ(outcome.exit_code, 6);
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(log(), directory_ + "\n0027\n0 1 2 /dev/null\nsession\n");
  EXPECT_EQ(log(JobId(8)), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_P(Launch, HasItsOwnEnvironmentAndNothingElse) {
  LaunchOrder made = order({"env"});
  made.environment = {
      "PATH=/usr/bin:/bin", "EMPTY=", "LINES=a\nb", "GFLOW_ATTEMPT_ID=of an outer job"};
  EXPECT_EQ(run(made).exit_code, 0);
  const std::string text = log();
  EXPECT_TRUE(text.starts_with("EMPTY=\nGFLOW_LOG_FILE=" + runner_->log_path(JobId(7)) +
                               "\nLINES=a\nb\nPATH=/usr/bin:/bin\nGFLOW_ATTEMPT_ID="))
      << text;
  EXPECT_EQ(text.find("outer"), std::string::npos);
  EXPECT_EQ(std::ranges::count(text, '\n'), 6);
}

TEST_P(Launch, FailuresSayWhichStepAndStandInTheLog) {
  const std::string not_executable = path("plain");
  ASSERT_TRUE(os::write_file(not_executable, "x", 0600));
  auto bad_interpreter = script("#!/no/such/interpreter\n");
  auto windows = script("#!/bin/sh\r\necho\r\n");
  auto no_directory = order({"true"});
  no_directory.work_dir = path("gone");
  const struct {
    const char* name;
    LaunchOrder order;
    std::string says;
  } kTable[] = {
      {"missing program", order({"no-such-program"}), "run 'no-such-program': No such file"},
      {"missing file", order({"./nothing"}), "run './nothing': No such file"},
      {"not executable", order({not_executable}), "Permission denied"},
      {"a directory", order({"/tmp"}), "run '/tmp': Permission denied"},
      {"missing working directory", no_directory, "working directory '" + path("gone") + "'"},
      {"missing interpreter", bad_interpreter, "'/no/such/interpreter': No such file"},
      {"Windows line ends", windows, "Windows line ends"},
  };
  JobId job(100);
  for (const auto& row : kTable) {
    LaunchOrder made = row.order;
    made.job = job;
    ++job.value;
    launch(made);
    const auto report = next(made.job);
    ASSERT_TRUE(report && std::holds_alternative<Gone>(*report))
        << row.name << ": was reported started";
    reports_.push_front(*report);
    const Outcome outcome = wait_gone(made.job);
    EXPECT_EQ(outcome.reason, EndReason::LaunchFailed) << row.name;
    EXPECT_NE(outcome.message.find(row.says), std::string::npos)
        << row.name << ": " << outcome.message;
    const std::string line = "gflow: the job could not be started: ";
    EXPECT_TRUE(log(made.job).starts_with(line)) << row.name << ": " << log(made.job);
  }
}

TEST_P(Launch, ALogThatCannotBeWrittenIsALaunchFailure) {
  std::filesystem::create_directory(runner_->log_path(JobId(7)));
  const Outcome outcome = run(order({"true"}));
  EXPECT_EQ(outcome.reason, EndReason::LaunchFailed);
  EXPECT_NE(outcome.message.find("open the log"), std::string::npos) << outcome.message;
}

TEST_P(Launch, WhatCannotBePutInOrderFailsAtOnce) {
  const std::string with_nul("a\0b", 3);
  const struct {
    const char* name;
    LaunchOrder order;
    const char* says;
  } kTable[] = {
      {"NUL in an argument", order({"echo", with_nul}), "NUL"},
      {"nothing to run", order({}), "no program"},
  };
  JobId job(200);
  for (const auto& row : kTable) {
    LaunchOrder made = row.order;
    made.job = job;
    ++job.value;
    const Outcome outcome = run(made);
    EXPECT_EQ(outcome.reason, EndReason::LaunchFailed) << row.name;
    EXPECT_NE(outcome.message.find(row.says), std::string::npos)
        << row.name << ": " << outcome.message;
  }
}

TEST_P(Launch, AnAttemptIsStartedOnce) {
  EXPECT_EQ(run(script("echo run")).exit_code, 0);
  const Outcome second = run(script("echo run"));
  EXPECT_EQ(second.reason, EndReason::NotStarted);
  EXPECT_EQ(second.failure, (Failure{FailureKind::Passing, "write the launch order", EEXIST}));
  EXPECT_EQ(log(), "run\n");
  // What is there is of the other one.
  runner_->forget(JobId(7), 1);
  EXPECT_TRUE(os::exists(path("attempts/7.1")));
}

TEST_P(Launch, RunsAsItsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can run jobs of other users";
  constexpr std::uint32_t kNobody = 65534;
  LaunchOrder made =
      script("id -u; id -G; cat \"$GFLOW_JOB_CONFIG\"; touch /usr/x 2>/dev/null || echo denied");
  made.user = {kNobody, "nobody"};
  made.work_dir = "/";
  made.payload.config_name = "c";
  made.payload.config = "config\n";
  const Outcome outcome = run(made);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.message;
  const std::string group = std::to_string(os::account_of(kNobody).gid);
  EXPECT_EQ(log(), "65534\n" + group + "\nconfig\ndenied\n");
  struct stat facts{};
  ASSERT_EQ(::stat(runner_->log_path(JobId(7)).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, kNobody);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_P(Launch, AUserWithoutAccountIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can run jobs of other users";
  LaunchOrder made = script("echo ran");
  made.user = {3'999'999'999U, "ghost"};
  const Outcome outcome = run(made);
  EXPECT_EQ(outcome.reason, EndReason::LaunchFailed);
  EXPECT_NE(outcome.message.find("uid 3999999999"), std::string::npos) << outcome.message;
}

INSTANTIATE_TEST_SUITE_P(Kill, Launch, ::testing::Bool(), cgroups_or_not);

}  // namespace
}  // namespace gflow::runner
