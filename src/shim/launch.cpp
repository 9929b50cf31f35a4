// SPDX-License-Identifier: Apache-2.0
#include "shim/launch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include "base/exec_list.h"
#include "base/text_fields.h"
#include "shim/io.h"

namespace gflow::shim {
namespace {

using Strings = std::vector<std::string>;

constexpr std::string_view kLaunch = "GFLOW_LAUNCH=";
constexpr int kNotFound = 127;  // as shells have it
constexpr int kUsage = 2;
constexpr int kBySignal = 128;
constexpr std::int64_t kGrace = 30'000'000'000;  // as a job's between SIGTERM and SIGKILL

void say(const std::string& text) { (void)write_whole(STDERR_FILENO, "gflow: " + text + "\n"); }

/// "NAME=value", of this process or of one to be started.
class Variables {
 public:
  Variables() {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      list_.emplace_back(*entry);
    }
  }

  /// nullptr: there is none, or it is empty.
  [[nodiscard]] const char* get(std::string_view name) const {
    const auto at = find(name);
    if (at == list_.end() || at->size() == name.size() + 1) return nullptr;
    return at->c_str() + name.size() + 1;
  }
  [[nodiscard]] std::string get(std::string_view name, const char* otherwise) const {
    const char* value = get(name);
    return value == nullptr ? otherwise : value;
  }
  [[nodiscard]] int number(std::string_view name, int otherwise) const {
    return number_of<std::int32_t>(get(name, "")).value_or(otherwise);
  }

  void remove(std::string_view name) {
    if (const auto at = find(name); at != list_.end()) list_.erase(at);
  }
  void set(std::string_view name, const std::string& value) {
    remove(name);
    list_.push_back(std::string(name).append("=").append(value));
  }

  [[nodiscard]] Strings& list() { return list_; }

 private:
  [[nodiscard]] Strings::const_iterator find(std::string_view name) const {
    return std::ranges::find_if(list_, [&](const std::string& text) {
      return text.size() > name.size() && text[name.size()] == '=' && text.starts_with(name);
    });
  }

  Strings list_;
};

/// Returns only if it cannot be run. By value: execvpe(3) wants them without const.
int run(Strings words, Variables variables) {
  const std::vector<char*> argv = exec_list(words);
  const std::vector<char*> envp = exec_list(variables.list());
  (void)::execvpe(argv.front(), argv.data(), envp.data());
  say("cannot run " + in_quotes(words.front()) + ": " + error_name(errno));
  return kNotFound;
}

int run_torchrun(const Strings& command, const Variables& variables) {
  Strings words = {"torchrun", "--no-python"};  // the rest it reads from PET_*
  words.insert(words.end(), command.begin(), command.end());
  return run(words, variables);
}

int run_accelerate(const Strings& command, const Variables& variables) {
  const int gpus = variables.number("GFLOW_GPUS", 0);
  Strings words = {"accelerate",
                   "launch",
                   "--num_machines",
                   "1",
                   "--num_processes",
                   std::to_string(std::max(gpus, 1)),
                   "--main_process_ip",
                   variables.get("MASTER_ADDR", "127.0.0.1"),
                   "--main_process_port",
                   variables.get("MASTER_PORT", "0")};
  if (gpus == 0) words.emplace_back("--cpu");
  if (gpus > 1) words.emplace_back("--multi_gpu");
  words.emplace_back("--no_python");
  words.insert(words.end(), command.begin(), command.end());
  return run(words, variables);
}

/// One process for each GPU. A signal to the job reaches all of them by itself: the shim sends it
/// to every process.
class Processes {
 public:
  Processes(Strings command, const Variables& variables)
      : command_(std::move(command)),
        variables_(variables),
        pids_(static_cast<std::size_t>(std::max(variables.number("GFLOW_GPUS", 1), 1)), 0) {}

  [[nodiscard]] int run_all();

 private:
  [[nodiscard]] bool start(std::size_t rank);
  [[noreturn]] void become(std::size_t rank, pid_t parent) const;
  [[nodiscard]] Variables variables_of(std::size_t rank) const;
  void wait_for_news();
  void reap();
  void note_end(std::size_t rank, int status);
  void end_others();
  void send(int signal) const;
  [[nodiscard]] bool any_left() const {
    return std::ranges::any_of(pids_, [](pid_t pid) { return pid != 0; });
  }

  Strings command_;
  Variables variables_;
  std::vector<pid_t> pids_;  ///< by rank; 0: has ended
  sigset_t before_{};        ///< what was blocked when this was started
  int exit_code_ = 0;
  bool told_to_end_ = false;  ///< by the job's end: the processes were told, too
  std::optional<std::int64_t> kill_at_;
};

int Processes::run_all() {
  sigset_t all;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_BLOCK, &all, &before_);
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    if (!start(rank)) break;
  }
  while (true) {
    reap();
    if (!any_left()) return exit_code_;
    wait_for_news();
  }
}

bool Processes::start(std::size_t rank) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(rank, parent);
  if (pid > 0) {
    pids_[rank] = pid;
    return true;
  }
  say("cannot start process " + std::to_string(rank) + ": " + error_name(errno));
  exit_code_ = 1;
  end_others();
  return false;
}

void Processes::become(std::size_t rank, pid_t parent) const {
  (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::_exit(run(command_, variables_of(rank)));
}

Variables Processes::variables_of(std::size_t rank) const {
  Variables its = variables_;
  const std::string world = std::to_string(pids_.size());
  its.set("RANK", std::to_string(rank));
  its.set("LOCAL_RANK", std::to_string(rank));
  its.set("GROUP_RANK", "0");
  its.set("WORLD_SIZE", world);
  its.set("LOCAL_WORLD_SIZE", world);
  const int cpus = its.number("GFLOW_CPUS", 0) / static_cast<int>(pids_.size());
  // Each would start a thread for every CPU.
  const bool shares = pids_.size() > 1 && its.get("OMP_NUM_THREADS") == nullptr;
  if (shares) its.set("OMP_NUM_THREADS", std::to_string(std::max(cpus, 1)));
  return its;
}

/// That one has ended, that the job is told to end, or that time is up.
void Processes::wait_for_news() {
  sigset_t all;
  (void)::sigfillset(&all);
  siginfo_t info{};
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t left =
      kill_at_ ? std::max<std::int64_t>(*kill_at_ - monotonic_ns(), 0) : kSecond;
  const timespec pause{.tv_sec = left / kSecond, .tv_nsec = left % kSecond};
  const int signal = ::sigtimedwait(&all, &info, kill_at_ ? &pause : nullptr);
  constexpr std::array kEnding = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  if (std::ranges::find(kEnding, signal) != kEnding.end()) told_to_end_ = true;
  if (signal < 0 && errno == EAGAIN) {
    send(SIGKILL);
    kill_at_.reset();
  }
}

void Processes::reap() {
  int status = 0;
  while (true) {
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    const auto at = std::ranges::find(pids_, pid);
    if (at == pids_.end()) continue;
    *at = 0;
    note_end(static_cast<std::size_t>(at - pids_.begin()), status);
  }
}

void Processes::note_end(std::size_t rank, int status) {
  const int code = WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
  if (code == 0 || exit_code_ != 0) return;
  exit_code_ = code;
  const std::string how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                              : "exit code " + std::to_string(code);
  const bool ends_others = any_left() && !told_to_end_;
  say("process " + std::to_string(rank) + " of " + std::to_string(pids_.size()) + " ended with " +
      how + (ends_others ? "; the others are told to end" : ""));
  if (ends_others) end_others();
}

/// They would wait for it for ever.
void Processes::end_others() {
  send(SIGTERM);
  kill_at_ = monotonic_ns() + kGrace;
}

void Processes::send(int signal) const {
  for (const pid_t pid : pids_) {
    if (pid != 0) (void)::kill(pid, signal);  // not waited for yet: nobody else's pid
  }
}

}  // namespace

std::string launch_mode(const std::vector<std::string>& environment) {
  for (const std::string& text : environment) {
    if (text.starts_with(kLaunch)) return text.substr(kLaunch.size());
  }
  return {};
}

int launch(int count, char** arguments) {
  const std::string_view mode = count > 0 ? arguments[0] : "";
  const Strings command(arguments + std::min(count, 1), arguments + count);
  (void)::prctl(PR_SET_NAME, "gflow-launch");
  Variables variables;
  variables.remove("GFLOW_LAUNCH");  // a job that one of them submits is its own
  if (command.empty()) {
    say("there is no command to launch");
    return kUsage;
  }
  if (mode == "torchrun") return run_torchrun(command, variables);
  if (mode == "accelerate") return run_accelerate(command, variables);
  if (mode == "ddp") return Processes(command, variables).run_all();
  say("GFLOW_LAUNCH is " + in_quotes(mode) + "; it can be ddp, torchrun or accelerate");
  return kUsage;
}

}  // namespace gflow::shim
