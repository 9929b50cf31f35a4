// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "os/fd.h"

namespace gflow::os {

/// A timer on the calendar that also fires when somebody sets the clock
/// (timerfd_create(2): CLOCK_REALTIME, TFD_TIMER_CANCEL_ON_SET).
class WallTimer {
 public:
  [[nodiscard]] static Result<WallTimer> create();
  /// Readable when the time has come or the clock was set.
  [[nodiscard]] int fd() const { return fd_.get(); }
  void set(WallTime at);
  void clear();
  /// Takes the event, so that fd() is not readable any more.
  void drain();

 private:
  explicit WallTimer(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace gflow::os
