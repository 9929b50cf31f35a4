// SPDX-License-Identifier: Apache-2.0
#include "runner/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <initializer_list>

#include "os/file.h"
#include "runner/processes.h"

namespace gflow::runner {
namespace {

constexpr int kStatus = 3;

/// Owns the two argument blocks of posix_spawn(3). Their setters fail only for want of memory.
class SpawnPlan {
 public:
  SpawnPlan() {
    (void)::posix_spawn_file_actions_init(&actions_);
    (void)::posix_spawnattr_init(&attributes_);
    sigset_t all;
    (void)::sigfillset(&all);
    (void)::posix_spawnattr_setsigmask(&attributes_, &all);
    (void)::posix_spawnattr_setsigdefault(&attributes_, &all);
    (void)::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)::posix_spawn_file_actions_addchdir_np(&actions_, "/");
    open(STDIN_FILENO, "/dev/null", O_RDONLY);
    open(STDOUT_FILENO, "/dev/null", O_WRONLY);
  }
  ~SpawnPlan() {
    (void)::posix_spawn_file_actions_destroy(&actions_);
    (void)::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void open(int fd, const char* path, int flags) {
    (void)::posix_spawn_file_actions_addopen(&actions_, fd, path, flags, 0600);
  }
  void copy(int from, int to) { (void)::posix_spawn_file_actions_adddup2(&actions_, from, to); }

  /// The pid. The arguments must start with the program's path.
  Result<int> run(std::initializer_list<std::string> arguments, int first_closed) {
    (void)::posix_spawn_file_actions_addclosefrom_np(&actions_, first_closed);
    std::vector<std::string> texts(arguments);
    std::vector<char*> argv;
    for (std::string& text : texts) argv.push_back(text.data());
    argv.push_back(nullptr);
    std::string path = "PATH=/usr/local/bin:/usr/bin:/bin";
    std::array<char*, 2> environment{path.data(), nullptr};
    pid_t pid = 0;
    errno = ::posix_spawn(&pid, argv[0], &actions_, &attributes_, argv.data(), environment.data());
    if (errno != 0) return os::errno_error("start", texts.front());
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Result<Shim> spawn_shim(const std::string& program, const std::string& directory) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return os::errno_error("make a pipe");
  Shim shim;
  shim.status = os::Fd(ends[0]);
  const os::Fd write_end(ends[1]);
  SpawnPlan plan;
  plan.open(STDERR_FILENO, (directory + "/shim.log").c_str(), O_WRONLY | O_CREAT | O_APPEND);
  plan.copy(write_end.get(), kStatus);
  shim.pid = GF_TRY(plan.run({program, directory}, kStatus + 1));
  // It is our child and not waited for yet, so the pid is still its own, now and when this has to
  // be tried again.
  shim.process = open_process(shim.pid).value_or(os::Fd());
  return shim;
}

void reap(const os::Fd& process) {
  siginfo_t info{};
  (void)::waitid(P_PIDFD, static_cast<id_t>(process.get()), &info, WEXITED | WNOHANG);
}

Result<void> probe_cgroup(const std::string& program, const std::string& directory) {
  SpawnPlan plan;
  plan.open(STDERR_FILENO, "/dev/null", O_WRONLY);
  const int pid = GF_TRY(plan.run({program, "--probe", directory}, STDERR_FILENO + 1));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
  return os::errno_error("join", directory);
}

}  // namespace gflow::runner
