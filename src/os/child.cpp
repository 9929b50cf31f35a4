// SPDX-License-Identifier: Apache-2.0
#include "os/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "base/exec_list.h"
#include "os/file.h"

namespace gflow::os {
namespace {

constexpr int kExtra = 3;

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<std::string> environment_with(const std::vector<std::string>& extra) {
  std::vector<std::string> all = extra;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    bool replaced = false;
    for (const std::string& one : extra) replaced |= name_of(one) == name_of(*at);
    if (!replaced) all.emplace_back(*at);
  }
  return all;
}

/// The two settings of posix_spawn, freed together.
struct Settings {
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_t files{};

  Settings(int channel, int extra) {
    (void)::posix_spawnattr_init(&attributes);
    (void)::posix_spawn_file_actions_init(&files);
    // Only allocation can fail in these, and that ends the process as everywhere.
    (void)::posix_spawn_file_actions_adddup2(&files, channel, STDIN_FILENO);
    (void)::posix_spawn_file_actions_adddup2(&files, channel, STDOUT_FILENO);
    if (extra >= 0) (void)::posix_spawn_file_actions_adddup2(&files, extra, kExtra);
    (void)::posix_spawn_file_actions_addclosefrom_np(&files,
                                                     extra >= 0 ? kExtra + 1 : STDERR_FILENO + 1);
    sigset_t none{};
    sigset_t all{};
    (void)::sigemptyset(&none);
    (void)::sigfillset(&all);
    (void)::posix_spawnattr_setsigmask(&attributes, &none);
    (void)::posix_spawnattr_setsigdefault(&attributes, &all);
    (void)::posix_spawnattr_setpgroup(&attributes, 0);
    (void)::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Settings() {
    (void)::posix_spawnattr_destroy(&attributes);
    (void)::posix_spawn_file_actions_destroy(&files);
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;
};

}  // namespace

Result<Child> start_child(const ChildOptions& options) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return errno_error("socketpair");
  }
  Child child;
  child.channel.reset(ends[0]);
  const Fd theirs(ends[1]);
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return errno_error("fcntl");

  std::vector<std::string> argv = options.argv;
  std::vector<std::string> environment = environment_with(options.environment);
  // Above the numbers that are given to the child, so that neither overwrites the other.
  const Fd extra(options.extra < 0 ? -1 : ::fcntl(options.extra, F_DUPFD_CLOEXEC, kExtra + 1));
  if (options.extra >= 0 && !extra.valid()) return errno_error("fcntl");
  const Settings settings(theirs.get(), extra.get());
  const int problem = ::posix_spawn(&child.pid,
                                    argv.at(0).c_str(),
                                    &settings.files,
                                    &settings.attributes,
                                    exec_list(argv).data(),
                                    exec_list(environment).data());
  if (problem != 0) {
    errno = problem;
    return errno_error("run", argv[0]);
  }
  child.process.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  if (!child.process.valid()) {
    const auto error = errno_error("pidfd_open");
    (void)::kill(child.pid, SIGKILL);  // not reaped yet, so the number is still its own
    (void)::waitpid(child.pid, nullptr, 0);
    return error;
  }
  return child;
}

bool reap(const Child& child) {
  const pid_t found = ::waitpid(child.pid, nullptr, WNOHANG);
  return found == child.pid || (found < 0 && errno == ECHILD);
}

}  // namespace gflow::os
