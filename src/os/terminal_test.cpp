// SPDX-License-Identifier: Apache-2.0
#include "os/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <string>

namespace gflow::os {
namespace {

/// Uses up the stack.
std::size_t descend(std::size_t depth) {
  std::array<volatile char, 4096> frame{};
  frame[depth % frame.size()] = 1;
  const std::size_t below = depth == SIZE_MAX ? 0 : descend(depth + 1);
  return below + static_cast<std::size_t>(frame[below % frame.size()]);
}

[[noreturn]] void overflow_with_farewell(int out) {
  const rlimit no_core{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &no_core);
  rlimit stack{};
  (void)::getrlimit(RLIMIT_STACK, &stack);
  stack.rlim_cur = rlim_t{1} << 20U;
  (void)::setrlimit(RLIMIT_STACK, &stack);
  (void)::dup2(out, STDOUT_FILENO);
  (void)::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);  // the report of a sanitizer
  const FaultRescue rescue;
  FaultRescue::set_farewell("farewell");
  ::_exit(static_cast<int>(descend(0)));
}

TEST(FaultRescue, SaysFarewellWhenTheStackIsUsedUp) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) overflow_with_farewell(ends[1]);
  (void)::close(ends[1]);
  std::string said;
  std::array<char, 64> buffer{};
  for (ssize_t got = 0; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    said.append(buffer.data(), static_cast<std::size_t>(got));
  }
  (void)::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(said, "farewell");
  // As without it: by that signal, or with the report of a sanitizer.
  EXPECT_TRUE((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) ||
              (WIFEXITED(status) && WEXITSTATUS(status) != 0))
      << status;
}

TEST(FaultRescue, LeavesNoStackBehind) {
  stack_t before{};
  ASSERT_EQ(::sigaltstack(nullptr, &before), 0);
  {
    const FaultRescue rescue;
  }
  stack_t after{};
  ASSERT_EQ(::sigaltstack(nullptr, &after), 0);
  EXPECT_EQ(after.ss_flags, before.ss_flags);
  EXPECT_TRUE((before.ss_flags & SS_DISABLE) != 0 || after.ss_sp == before.ss_sp);
}

}  // namespace
}  // namespace gflow::os
