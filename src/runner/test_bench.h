// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/user.h"
#include "runner/processes.h"
#include "runner/runner.h"

/// What the tests of the runner stand on: a directory of their own, real shims, real jobs, and
/// waiting by poll(2) for what is to happen.
namespace gflow::runner {

constexpr int kPatienceMs =
    60'000;  // how long something that must happen may take on a loaded machine

/// A pipe by name through which a job tells the test that it has come to a point, or the test the
/// job.
class Fifo {
 public:
  explicit Fifo(std::string path) : path_(std::move(path)) {
    (void)::mkfifo(path_.c_str(), 0666);
    (void)::chmod(path_.c_str(), 0666);
    fd_ = os::Fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The next line without its end, or what came until patience was over.
  [[nodiscard]] std::string line() {
    std::string text;
    pollfd wait{fd_.get(), POLLIN, 0};
    for (char c = 0; ::poll(&wait, 1, kPatienceMs) > 0 && ::read(fd_.get(), &c, 1) == 1;) {
      if (c == '\n') return text;
      text.push_back(c);
    }
    ADD_FAILURE() << "nothing came through " << path_ << " but '" << text << "'";
    return text;
  }
  [[nodiscard]] int number() { return std::atoi(line().c_str()); }
  void say(const std::string& text) { (void)os::write_all(fd_.get(), text + "\n"); }

 private:
  std::string path_;
  os::Fd fd_;
};

inline bool wait_for_end(const os::Fd& process) {
  pollfd wait{process.get(), POLLIN, 0};
  return ::poll(&wait, 1, kPatienceMs) > 0;
}

/// A pidfd; invalid if there is no such process.
inline os::Fd hold(int pid) { return open_process(pid).value_or(os::Fd()); }

class RunnerBench : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "gflow-runner-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    (void)::chmod(directory_.c_str(), 0755);
    options_.attempts_dir = directory_ + "/attempts";
    options_.logs_dir = directory_ + "/logs";
    options_.shim = os::program_directory() + "/../bin/gflow-shim";
    options_.boot_id = os::boot_id().value();
    options_.use_cgroups = UsesCgroups();
    reopen();
  }

  void TearDown() override {
    for (const auto& key : open_)
      runner_->stop(key.first, key.second, SIGKILL, EndReason::Cancelled);
    while (!open_.empty()) (void)wait_gone(open_.begin()->first);
    for (const auto& key : launched_) runner_->forget(key.first, key.second);
    runner_.reset();
    std::filesystem::remove_all(directory_);
  }

  [[nodiscard]] virtual bool UsesCgroups() const { return GetParam(); }

  /// As if the daemon had been restarted: the old one knows nothing any more.
  void reopen() {
    runner_.reset();
    reports_.clear();
    auto runner = Runner::open(options_);
    ASSERT_TRUE(runner) << runner.error().message;
    runner_ = std::move(*runner);
  }

  [[nodiscard]] LaunchOrder order(std::vector<std::string> argv) const {
    LaunchOrder order;
    order.job = JobId(7);
    order.attempt = 1;
    order.user = {::geteuid(), os::own_account().name};
    order.work_dir = directory_;
    order.payload.argv = std::move(argv);
    order.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HERE=" + directory_};
    order.grace = std::chrono::seconds(0);
    return order;
  }
  [[nodiscard]] LaunchOrder script(const std::string& text) const {
    LaunchOrder made = order({"job.sh"});
    made.payload.script = text;
    return made;
  }

  void launch(const LaunchOrder& order) {
    launched_.emplace_back(order.job, order.attempt);
    open_.emplace_back(order.job, order.attempt);
    runner_->launch(order);
  }

  /// The next report about a job; fails the test if none comes.
  [[nodiscard]] std::optional<Report> next(JobId job) {
    while (true) {
      for (auto at = reports_.begin(); at != reports_.end(); ++at) {
        if (std::visit([](const auto& report) { return report.job; }, *at) != job) continue;
        Report found = *at;
        reports_.erase(at);
        return found;
      }
      pollfd wait{runner_->fd(), POLLIN, 0};
      if (::poll(&wait, 1, kPatienceMs) <= 0) {
        ADD_FAILURE() << "no news of job " << job.value;
        return std::nullopt;
      }
      for (Report& report : runner_->poll()) reports_.push_back(std::move(report));
    }
  }
  [[nodiscard]] int wait_started(JobId job = JobId(7)) {
    const auto report = next(job);
    const auto* started = report ? std::get_if<Started>(&*report) : nullptr;
    if (started != nullptr) return started->pid;
    ADD_FAILURE() << "job " << job.value << " did not start";
    return 0;
  }
  [[nodiscard]] Outcome wait_gone(JobId job = JobId(7)) {
    while (const auto report = next(job)) {
      if (const auto* gone = std::get_if<Gone>(&*report)) {
        std::erase(open_, std::pair(gone->job, gone->attempt));
        return gone->outcome;
      }
    }
    std::erase_if(open_, [&](const auto& key) { return key.first == job; });
    return {};
  }
  /// How an attempt stands of which that was not known.
  [[nodiscard]] Adoption wait_adopted(JobId job = JobId(7)) {
    const auto report = next(job);
    const auto* adopted = report ? std::get_if<Adopted>(&*report) : nullptr;
    if (adopted != nullptr) return adopted->how;
    ADD_FAILURE() << "how job " << job.value << " stands was never known";
    return NeverRan{};
  }
  [[nodiscard]] Outcome run(const LaunchOrder& order) {
    launch(order);
    return wait_gone(order.job);
  }
  /// The attempt ended in a way that is not reported (adopt() said so).
  void is_over(JobId job = JobId(7)) {
    std::erase_if(open_, [&](const auto& key) { return key.first == job; });
  }

  [[nodiscard]] std::string read(const std::string& path) const {
    return os::read_file(path).value_or("cannot be read: " + path);
  }
  [[nodiscard]] std::string log(JobId job = JobId(7)) const { return read(runner_->log_path(job)); }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] Fifo fifo(const std::string& name) const { return Fifo(path(name)); }
  /// The supervisor of a job's first process.
  [[nodiscard]] static int shim_of(int pid) {
    const auto facts = os::process_facts(pid);
    return facts ? facts->parent : 0;
  }

  std::string directory_;
  Options options_;
  std::unique_ptr<Runner> runner_;
  std::deque<Report> reports_;
  std::vector<std::pair<JobId, int>> launched_;
  std::vector<std::pair<JobId, int>> open_;
};

inline std::string cgroups_or_not(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "cgroups" : "subreaper";
}

}  // namespace gflow::runner
