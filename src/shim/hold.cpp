// SPDX-License-Identifier: Apache-2.0
#include "shim/hold.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "base/proc_text.h"
#include "base/text_fields.h"
#include "shim/io.h"

namespace gflow::shim {
namespace {

/// Readable once the process has ended; none if it is not there any more, or is another one.
Fd watch(std::int32_t pid, std::uint64_t start_time) {
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto text = read_path("/proc/" + std::to_string(pid) + "/stat");
  const auto facts = parse_proc_stat(text.value_or(""));
  if (!facts || facts->start_time != start_time) process.reset();
  return process;
}

}  // namespace

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
  const Fd process = watch(*pid, *start_time);
  if (!process.valid()) return 0;
  pollfd ended{process.get(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  return 0;
}

}  // namespace gflow::shim
