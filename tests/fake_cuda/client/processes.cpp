// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "client/commands.h"

namespace client {
namespace {

/// The rest of the commands is the child's; its parent answers with what became of it.
std::string go_on_as(pid_t child) {
  if (child == 0) return "0 child";
  int status = 0;
  (void)::waitpid(child, &status, 0);
  return said(abi::kSuccess, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/// Past the C library, which does not learn that it is another process.
pid_t raw_clone() {
  return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

/// Goes on as another program, this one, which says that it is there.
std::string execute(char* program, const Request& asked) {
  std::string how = asked.name;
  std::array<char*, 3> arguments{program, how.data(), nullptr};
  (void)::setenv("CLIENT_EXECUTED", "", 1);
  (void)::execv(program, arguments.data());
  return "1";
}

}  // namespace

void add_processes(Commands& commands, char* program) {
  commands["fork"] = [](const Request&) { return go_on_as(::fork()); };
  commands["clone"] = [](const Request&) { return go_on_as(raw_clone()); };
  commands["execute"] = [program](const Request& asked) { return execute(program, asked); };
}

}  // namespace client
