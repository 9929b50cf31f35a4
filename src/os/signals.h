// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <optional>
#include <span>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::os {

/// Keeps signals from this thread and those it starts while this lives.
class SignalsBlocked {
 public:
  SignalsBlocked();  ///< all of them, as for a thread that is to leave them to another
  explicit SignalsBlocked(std::span<const int> signals);
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// Signals that come as something to read instead of interrupting, on this thread and those it
/// starts, while this lives.
class SignalWatch {
 public:
  /// Errors: what the system said.
  [[nodiscard]] static Result<SignalWatch> open(std::span<const int> signals);
  ~SignalWatch();
  SignalWatch(SignalWatch&&) noexcept = default;
  SignalWatch& operator=(SignalWatch&&) noexcept = delete;
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }  ///< readable when one came
  /// The signal that came; nothing if none did. Does not wait.
  [[nodiscard]] std::optional<int> next() const;

 private:
  SignalWatch(Fd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}

  Fd fd_;
  sigset_t before_{};
};

}  // namespace gflow::os
