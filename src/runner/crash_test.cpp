// SPDX-License-Identifier: Apache-2.0
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cstdint>
#include <functional>

#include "runner/attempt_files.h"
#include "runner/test_bench.h"

/// Reliability by position: whatever the shim or the daemon was doing when it was killed, the next
/// daemon knows how the attempt stands, it ran once at most, and nothing of it is left behind.
namespace gflow::runner {
namespace {

#ifdef GFLOW_ADDRESS_SANITIZER
constexpr int kStride = 11;  // most points lie in the sanitizer's own start, and each takes long
#else
constexpr int kStride = 1;
#endif

enum class Ended { BeforeThePoint, AtThePoint, CannotTrace };

/// Runs `body` in a child and kills that when it enters or leaves its `point`-th system call.
Ended run_and_kill(int point, const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(99);
    (void)::raise(SIGSTOP);
    body();
    ::_exit(0);
  }
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) return Ended::CannotTrace;
  for (int passed = 0; passed < point; ++passed) {
    const int signal = WSTOPSIG(status);
    const long deliver = signal == SIGTRAP || signal == SIGSTOP ? 0 : signal;
    if (::ptrace(PTRACE_SYSCALL, pid, nullptr, deliver) != 0) return Ended::CannotTrace;
    if (::waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) return Ended::BeforeThePoint;
  }
  (void)::kill(pid, SIGKILL);
  (void)::waitpid(pid, &status, 0);
  return Ended::AtThePoint;
}

class Crash : public RunnerBench {
 protected:
  [[nodiscard]] bool UsesCgroups() const override { return false; }

  [[nodiscard]] std::string trace_of(JobId job) const {
    return os::read_file(path("ran-" + std::to_string(job.value))).value_or("");
  }
  [[nodiscard]] LaunchOrder order_of(JobId job) const {
    LaunchOrder made =
        order({"/bin/sh", "-c", "printf x >> ran-" + std::to_string(job.value) + "; exit 7"});
    made.job = job;
    return made;
  }

  /// What is wrong with how the attempt stands; "" if nothing is. `may_be_lost`: its shim was
  /// killed.
  std::string verdict(JobId job, bool may_be_lost) {
    Adoption adoption = runner_->adopt(job, 1, options_.boot_id);
    // The job's first process has a copy of the lock until its execve(2).
    if (std::holds_alternative<Unknown>(adoption)) adoption = wait_adopted(job);
    if (std::holds_alternative<NeverRan>(adoption)) {
      never_ran_.push_back(job);
      return trace_of(job).empty() ? "" : "it ran though it is said that it did not";
    }
    const auto* over = std::get_if<Over>(&adoption);
    const Outcome outcome = over != nullptr ? over->outcome : wait_gone(job);
    const std::string trace = trace_of(job);
    if (!trace.empty() && trace != "x") return "it ran more than once";
    if (outcome.reason == EndReason::SupervisorDied)
      return may_be_lost ? "" : "it was lost: " + outcome.message;
    if (outcome.reason != EndReason::Exited) return "its end is told as " + outcome.message;
    return trace == "x" && outcome.exit_code == 7 ? "" : "it did not run to its end";
  }

  /// Sweeps until the body comes to its end before it is killed; the number of points.
  int sweep(const std::function<void(JobId)>& body, bool may_be_lost) {
    constexpr int kMax = 50'000;
    for (int point = 1; point < kMax; point += kStride) {
      const JobId job(static_cast<std::uint64_t>(point));
      const Ended ended = run_and_kill(point, [&] { body(job); });
      if (ended == Ended::CannotTrace) return 0;
      EXPECT_EQ(verdict(job, may_be_lost), "") << "killed at point " << point;
      if (const auto order = AttemptFiles(options_.attempts_dir, job, 1).order().value()) {
        EXPECT_TRUE(survivors_of(traces_of(*order)).value().empty()) << "killed at point " << point;
      }
      if (ended == Ended::BeforeThePoint) return point;
    }
    ADD_FAILURE() << "there is no end of system calls";
    return kMax;
  }

  std::vector<JobId> never_ran_;
};

TEST_F(Crash, OfTheShimAtEverySystemCall) {
  const int points = sweep(
      [this](JobId job) {
        const AttemptFiles files(options_.attempts_dir, job, 1);
        attempt::Order order;
        order.job = job.value;
        order.attempt = 1;
        order.launch_id = directory_ + "-" + std::to_string(job.value);
        order.boot_id = options_.boot_id;
        order.work_dir = directory_;
        order.log_path = runner_->log_path(job);
        order.argv = order_of(job).payload.argv;
        order.mark = 1'000'000 + job.value;
        if (!files.create(order, {})) ::_exit(1);
        (void)::close(3);  // it has no status pipe
        (void)::execl(options_.shim.c_str(), "gflow-shim", files.directory().c_str(), nullptr);
      },
      true);
  if (points == 0) GTEST_SKIP() << "processes cannot be traced here";
  EXPECT_GT(points, 100);
  RecordProperty("crash_points", points);
}

TEST_F(Crash, OfTheDaemonAtEverySystemCall) {
  const int points = sweep(
      [this](JobId job) {
        auto daemon = Runner::open(options_);
        if (!daemon) ::_exit(1);
        (*daemon)->launch(order_of(job));
        for (bool gone = false; !gone;) {
          pollfd wait{(*daemon)->fd(), POLLIN, 0};
          (void)::poll(&wait, 1, kPatienceMs);
          for (const Report& report : (*daemon)->poll()) {
            gone = gone || std::holds_alternative<Gone>(report);
          }
        }
      },
      false);
  if (points == 0) GTEST_SKIP() << "processes cannot be traced here";
  EXPECT_GT(points, 100);
  RecordProperty("crash_points", points);
  for (const JobId job : never_ran_) EXPECT_EQ(trace_of(job), "") << job.value << " ran later";
}

}  // namespace
}  // namespace gflow::runner
