// SPDX-License-Identifier: Apache-2.0
#include "shim/held_process.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "base/proc_text.h"
#include "shim/io.h"

namespace gflow::shim {

Fd hold_process(std::int32_t pid, std::uint64_t start_time) {
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto text = read_path("/proc/" + std::to_string(pid) + "/stat");
  const auto facts = parse_proc_stat(text.value_or(""));
  if (!facts || facts->start_time != start_time) process.reset();
  return process;
}

}  // namespace gflow::shim
