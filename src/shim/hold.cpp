// SPDX-License-Identifier: Apache-2.0
#include "shim/hold.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/text_fields.h"
#include "shim/held_process.h"

namespace gflow::shim {
int hold_for(int count, char** arguments) {
  const bool is_told = count == 2 || count == 4;
  const auto pid = is_told ? number_of<std::int32_t>(arguments[0]) : std::nullopt;
  const auto start_time = is_told ? number_of<std::uint64_t>(arguments[1]) : std::nullopt;
  if (count == 0 || pid == 0) {
    while (true) (void)::pause();
  }
  if (!pid || !start_time) {
    (void)std::fputs("usage: gflow-shim --hold [PID START [WAITER START]] (started by gflowd)\n",
                     stderr);
    return 2;
  }
  const Fd process = hold_process(*pid, *start_time);
  if (!process.valid()) return 0;
  pollfd ended{process.get(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  return 0;
}

}  // namespace gflow::shim
