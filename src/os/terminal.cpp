// SPDX-License-Identifier: Apache-2.0
#include "os/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

namespace gflow::os {

namespace {

constexpr std::array kFaults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

/// What a handler of signals may look at, as it is there before main().
struct Rescue {
  std::atomic<const char*> farewell = nullptr;
  std::atomic<pid_t> drawer = 0;       ///< the thread that draws
  std::atomic<bool> has_keys = false;  ///< `keys` is what to give back
  termios keys{};
  std::array<struct sigaction, kFaults.size()> before{};
  std::array<std::byte, std::size_t{64} << 10U> stack{};  ///< for faults of one that is used up
};

Rescue& rescue() {
  static constinit Rescue the_rescue;
  return the_rescue;
}

/// Calls only what may be called at any time; other signals wait.
void give_back_and_end(int number) {
  Rescue& all = rescue();
  if (const pid_t drawer = all.drawer; ::gettid() != drawer) {
    // Else that one goes on drawing after the farewell.
    (void)::syscall(SYS_tgkill, ::getpid(), drawer, number);
    while (true) ::pause();
  }
  if (const char* farewell = all.farewell.exchange(nullptr)) {
    (void)::write(STDOUT_FILENO, farewell, std::strlen(farewell));  // or the terminal is gone
  }
  if (all.has_keys.exchange(false)) (void)::tcsetattr(STDIN_FILENO, TCSANOW, &all.keys);
  const auto at = std::ranges::find(kFaults, number);
  // What was to be done comes once this returns: the fault happens again, or waits here.
  (void)::sigaction(
      number, &all.before.at(static_cast<std::size_t>(at - kFaults.begin())), nullptr);
  (void)::raise(number);
}

}  // namespace

FaultRescue::FaultRescue() {
  rescue().drawer = ::gettid();
  stack_t stack{};
  // A sanitizer has one already.
  if (::sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) != 0) {
    stack = {.ss_sp = rescue().stack.data(), .ss_flags = 0, .ss_size = rescue().stack.size()};
    (void)::sigaltstack(&stack, nullptr);  // without it only such a fault leaves the terminal
  }
  struct sigaction action{};
  action.sa_handler = give_back_and_end;
  action.sa_flags = SA_ONSTACK;
  ::sigfillset(&action.sa_mask);
  for (std::size_t i = 0; i < kFaults.size(); ++i) {
    (void)::sigaction(kFaults.at(i), &action, &rescue().before.at(i));  // there are such signals
  }
}

FaultRescue::~FaultRescue() {
  for (std::size_t i = 0; i < kFaults.size(); ++i) {
    (void)::sigaction(kFaults.at(i), &rescue().before.at(i), nullptr);
  }
  stack_t stack{};
  if (::sigaltstack(nullptr, &stack) == 0 && stack.ss_sp == rescue().stack.data()) {
    stack.ss_flags = SS_DISABLE;
    (void)::sigaltstack(&stack, nullptr);
  }
}

void FaultRescue::set_farewell(const char* text) { rescue().farewell = text; }

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

bool is_in_foreground(int fd) {
  const pid_t group = ::tcgetpgrp(fd);
  return group < 0 || group == ::getpgrp();
}

Keys::Keys() { take(); }

void Keys::take() {
  // Who is not in the foreground would be stopped for changing the terminal.
  if (!is_terminal(0) || ::tcgetpgrp(0) != ::getpgrp()) return;
  termios now{};
  if (::tcgetattr(0, &now) != 0) return;
  if (!before_) before_ = now;
  rescue().keys = *before_;
  rescue().has_keys = true;
  taken_ = true;
  now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  now.c_cc[VMIN] = 1;
  now.c_cc[VTIME] = 0;
  (void)::tcsetattr(0, TCSADRAIN, &now);  // without it keys come with the next line end
}

void Keys::release() {
  if (!std::exchange(taken_, false)) return;
  rescue().has_keys = false;
  if (!is_in_foreground(0)) return;
  (void)::tcsetattr(0, TCSADRAIN, &*before_);  // fails only where the terminal is gone
  before_.reset();
}

std::optional<char> Keys::next() {
  char key = 0;
  ssize_t got = 0;
  do {
    got = ::read(0, &key, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) return std::nullopt;
  return key;
}

void end_with_reader(int fd) {
  std::thread([fd] {
    pollfd watched{fd, 0, 0};
    while (::poll(&watched, 1, -1) < 0 && errno == EINTR) {
    }
    if ((watched.revents & POLLERR) == 0) return;
    (void)::signal(SIGPIPE, SIG_DFL);
    (void)::kill(::getpid(), SIGPIPE);
  }).detach();
}

}  // namespace gflow::os
