// SPDX-License-Identifier: Apache-2.0
#include "shim/pending_signals.h"

#include <cerrno>
#include <csignal>
#include <ctime>

namespace gflow::shim {

void discard_pending_signals() {
  sigset_t pending;
  (void)::sigfillset(&pending);
  (void)::sigdelset(&pending, SIGCHLD);
  const timespec at_once{};
  while (::sigtimedwait(&pending, nullptr, &at_once) > 0 || errno == EINTR) {
  }
}

}  // namespace gflow::shim
