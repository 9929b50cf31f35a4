// SPDX-License-Identifier: Apache-2.0
#include "os/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

namespace gflow::os {

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
  now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  now.c_cc[VMIN] = 1;
  now.c_cc[VTIME] = 0;
  (void)::tcsetattr(0, TCSADRAIN, &now);  // without it keys come with the next line end
}

void Keys::release() {
  if (!before_) return;
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
