// SPDX-License-Identifier: Apache-2.0
#include "os/process.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "os/file.h"

namespace gflow::os {

Result<std::optional<ProcessFacts>> find_process(int pid) {
  const auto text = GF_TRY(read_if_exists("/proc/" + std::to_string(pid) + "/stat"));
  if (!text) return std::nullopt;
  return parse_proc_stat(*text);
}

std::optional<ProcessFacts> process_facts(int pid) {
  return find_process(pid).value_or(std::nullopt);
}

Fd hold_process(int pid, std::uint64_t start_time) {
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto facts = process_facts(pid);  // after: the pid is its own as long as it is held
  if (!facts || facts->start_time != start_time) process.reset();
  return process;
}

bool is_process(int pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))).valid(); }

std::optional<std::uint32_t> process_owner(int pid) {
  struct stat facts{};
  if (::stat(("/proc/" + std::to_string(pid)).c_str(), &facts) != 0) return std::nullopt;
  return facts.st_uid;
}

}  // namespace gflow::os
