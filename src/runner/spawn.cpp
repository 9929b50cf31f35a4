// SPDX-License-Identifier: Apache-2.0
#include "runner/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/exec_list.h"
#include "os/file.h"
#include "runner/processes.h"

namespace gflow::runner {
namespace {

constexpr int kStatus = 3;
constexpr int kOrders = 4;

/// Owns the two argument blocks of posix_spawn(3). Their setters fail only for want of memory.
class SpawnPlan {
 public:
  SpawnPlan() {
    (void)::posix_spawn_file_actions_init(&actions_);
    (void)::posix_spawnattr_init(&attributes_);
    // What is ignored here the shim sets to its default itself, with the two signals that glibc
    // makes every child of posix_spawn(3) ignore.
    sigset_t all;
    (void)::sigfillset(&all);
    (void)::posix_spawnattr_setsigmask(&attributes_, &all);
    (void)::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
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
  Result<int> run(std::vector<std::string> texts, int first_closed) {
    (void)::posix_spawn_file_actions_addclosefrom_np(&actions_, first_closed);
    const std::vector<char*> argv = exec_list(texts);
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

/// `orders`: what becomes its descriptor 4, if anything does.
Result<Shim> start_shim(std::vector<std::string> arguments,
                        const std::string& log,
                        const os::Fd* orders) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return os::errno_error("make a pipe");
  Shim shim;
  shim.status = os::Fd(ends[0]);
  // Above the numbers that are given to the child, so that neither overwrites the other.
  const os::Fd write_end(::fcntl(ends[1], F_DUPFD_CLOEXEC, kOrders + 1));
  (void)::close(ends[1]);
  const os::Fd its(orders == nullptr ? -1 : ::fcntl(orders->get(), F_DUPFD_CLOEXEC, kOrders + 1));
  if (!write_end.valid() || (orders != nullptr && !its.valid())) {
    return os::errno_error("make a descriptor");
  }
  SpawnPlan plan;
  plan.open(STDERR_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  plan.copy(write_end.get(), kStatus);
  if (orders != nullptr) plan.copy(its.get(), kOrders);
  const int first_closed = orders == nullptr ? kStatus + 1 : kOrders + 1;
  shim.pid = GF_TRY(plan.run(std::move(arguments), first_closed));
  // It is our child and not waited for yet, so the pid is still its own, now and when this has to
  // be tried again.
  shim.process = open_process(shim.pid).value_or(os::Fd());
  return shim;
}

}  // namespace

Result<Shim> spawn_shim(const std::string& program,
                        const std::string& directory,
                        const std::string& log) {
  return start_shim({program, directory}, log, nullptr);
}

Result<Standby> spawn_standby(const std::string& program,
                              const std::string& log,
                              std::vector<std::string> groups,
                              bool unified,
                              std::size_t room) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return os::errno_error("make a socket");
  }
  Standby standby;
  standby.orders = os::Fd(ends[0]);
  const os::Fd its(ends[1]);
  std::vector<std::string> arguments = {program, "--standby", std::string(room, '-')};
  if (!unified) arguments.emplace_back();
  arguments.insert(arguments.end(), groups.begin(), groups.end());
  standby.shim = GF_TRY(start_shim(std::move(arguments), log, &its));
  standby.groups = std::move(groups);
  return standby;
}

bool send_attempt(const Standby& standby,
                  const std::string& directory,
                  std::span<const std::string> groups) {
  std::string text = directory + '\0';
  for (const std::string& group : groups) text.append(group).push_back('\0');
  const ssize_t put = ::send(standby.orders.get(), text.data(), text.size(), MSG_NOSIGNAL);
  // Our child, not waited for: nobody else's pid.
  if (put >= 0) (void)::kill(standby.shim.pid, SIGCONT);
  return put == static_cast<ssize_t>(text.size());
}

void dismiss(Standby standby) {
  standby.orders.reset();
  constexpr int kPatienceMs = 1000;  // milliseconds are enough, unless somebody stopped it
  pollfd ended{standby.shim.process.get(), POLLIN, 0};
  if (!standby.shim.process.valid() || ::poll(&ended, 1, kPatienceMs) <= 0) {
    (void)::kill(standby.shim.pid, SIGKILL);
  }
  int status = 0;
  while (::waitpid(standby.shim.pid, &status, 0) < 0 && errno == EINTR) {
  }
}

int reap(const os::Fd& process) {
  siginfo_t info{};
  const auto id = static_cast<id_t>(process.get());
  if (::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return 0;
  return info.si_code == CLD_EXITED ? 0 : info.si_status;
}

namespace {

/// 0, or the errno that a shim ended with.
Result<int> run_probe(std::vector<std::string> arguments) {
  SpawnPlan plan;
  plan.open(STDERR_FILENO, "/dev/null", O_WRONLY);
  const int pid = GF_TRY(plan.run(std::move(arguments), STDERR_FILENO + 1));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

}  // namespace

Result<void> probe_cgroup(const std::string& program, const std::string& directory) {
  errno = GF_TRY(run_probe({program, "--probe", directory}));
  if (errno == 0) return {};
  return os::errno_error("join", directory);
}

Result<void> probe_filter(const std::string& program,
                          const std::string& directory,
                          const std::string& device) {
  errno = GF_TRY(run_probe({program, "--probe-filter", directory, device}));
  if (errno == 0) return {};
  if (errno == EBADE) {
    return fail(Code::Failure,
                "processes in " + directory + " can open " + device + " all the same");
  }
  return os::errno_error("try the device filter of", directory);
}

}  // namespace gflow::runner
