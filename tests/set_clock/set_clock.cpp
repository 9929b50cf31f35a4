// SPDX-License-Identifier: Apache-2.0
// clock_gettime() with a calendar that is ahead by the seconds in the file $GFLOW_SET_CLOCK names;
// time that passes is left alone, as where an administrator sets the clock.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>

namespace {

long seconds_ahead() {
  const char* path = std::getenv("GFLOW_SET_CLOCK");
  const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 32> text{};
  const ssize_t size = ::read(file, text.data(), text.size() - 1);
  (void)::close(file);
  return size > 0 ? std::strtol(text.data(), nullptr, 10) : 0;
}

}  // namespace

extern "C" int clock_gettime(clockid_t id, timespec* time) noexcept {
  const long failed = ::syscall(SYS_clock_gettime, id, time);
  if (failed == 0 && id == CLOCK_REALTIME) time->tv_sec += seconds_ahead();
  return static_cast<int>(failed);
}
