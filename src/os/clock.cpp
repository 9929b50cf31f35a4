// SPDX-License-Identifier: Apache-2.0
#include "os/clock.h"

#include <ctime>

#include "base/text.h"
#include "os/file.h"

namespace gflow::os {
namespace {

std::chrono::milliseconds read_clock(clockid_t id) {
  timespec time{};
  (void)::clock_gettime(id, &time);  // cannot fail for these clocks
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace

Now now() { return {WallTime(read_clock(CLOCK_REALTIME)), MonoTime(read_clock(CLOCK_MONOTONIC))}; }

std::chrono::seconds utc_offset(WallTime time) {
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  std::tm local{};
  (void)::localtime_r(&seconds, &local);
  return std::chrono::seconds(local.tm_gmtoff);
}

Result<std::string> boot_id() {
  const auto text = GF_TRY(read_if_exists("/proc/sys/kernel/random/boot_id"));
  return text ? std::string(trim(*text)) : "unknown";
}

}  // namespace gflow::os
