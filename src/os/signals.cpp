// SPDX-License-Identifier: Apache-2.0
#include "os/signals.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "os/file.h"

namespace gflow::os {

SignalsBlocked::SignalsBlocked() {
  sigset_t all{};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::SignalsBlocked(std::span<const int> signals) {
  sigset_t wanted{};
  ::sigemptyset(&wanted);
  for (const int signal : signals) ::sigaddset(&wanted, signal);
  ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
}

SignalsBlocked::~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

Result<SignalWatch> SignalWatch::open(std::span<const int> signals) {
  sigset_t wanted{};
  sigset_t before{};
  ::sigemptyset(&wanted);
  for (const int signal : signals) ::sigaddset(&wanted, signal);
  Fd fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return errno_error("signalfd");
  ::pthread_sigmask(SIG_BLOCK, &wanted, &before);
  return SignalWatch(std::move(fd), before);
}

SignalWatch::~SignalWatch() {
  if (fd_.valid()) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalWatch::next() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

}  // namespace gflow::os
