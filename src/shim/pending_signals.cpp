// SPDX-License-Identifier: Apache-2.0
#include "shim/pending_signals.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <vector>

#include "attempt/control.h"

namespace gflow::shim {
namespace {

/// Takes what is pending of these; the numbers of those that `sender` sent, in the order taken.
std::vector<int> take_pending(const sigset_t& set, pid_t sender) {
  std::vector<int> sent;
  const timespec at_once{};
  while (true) {
    siginfo_t info{};
    const int number = ::sigtimedwait(&set, &info, &at_once);
    if (number < 0 && errno == EINTR) continue;
    if (number < 0) return sent;
    if (info.si_pid == sender) sent.push_back(number);
  }
}

}  // namespace

void discard_signals_to_supervisor() {
  sigset_t set;
  (void)::sigfillset(&set);
  (void)::sigdelset(&set, SIGCHLD);
  for (const int number : attempt::kControlSignals) (void)::sigdelset(&set, number);
  constexpr pid_t kNobody = -1;
  (void)take_pending(set, kNobody);
}

void discard_signals_to_recruit(pid_t supervisor) {
  sigset_t set;
  (void)::sigfillset(&set);
  (void)::sigdelset(&set, SIGCHLD);
  for (const int number : take_pending(set, supervisor)) (void)::kill(::getpid(), number);
}

}  // namespace gflow::shim
