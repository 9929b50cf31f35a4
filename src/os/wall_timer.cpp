// SPDX-License-Identifier: Apache-2.0
#include "os/wall_timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>

#include "os/file.h"

namespace gflow::os {

Result<WallTimer> WallTimer::create() {
  Fd fd(::timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd.valid()) return errno_error("create a timer");
  return WallTimer(std::move(fd));
}

void WallTimer::set(WallTime at) {
  const auto since = at.time_since_epoch();
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  itimerspec spec{};
  spec.it_value.tv_sec = whole.count();
  spec.it_value.tv_nsec = std::chrono::nanoseconds(since - whole).count();
  // Fails only for times a WallTime cannot hold.
  (void)::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &spec, nullptr);
}

void WallTimer::clear() {
  const itimerspec never{};
  (void)::timerfd_settime(fd_.get(), 0, &never, nullptr);
}

void WallTimer::drain() {
  std::uint64_t count = 0;
  // ECANCELED says that the clock was set: an event like any other.
  (void)!::read(fd_.get(), &count, sizeof count);
}

}  // namespace gflow::os
