// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/proc_text.h"
#include "share/account.h"

namespace gflow::share {
namespace {

/// Without allocating. The state of a process that is gone is empty.
std::optional<ProcessFacts> facts_of(std::uint32_t pid) {
  std::array<char, 32> path{"/proc/"};
  char* const number = path.data() + 6;
  char* const end = std::to_chars(number, path.data() + 20, pid).ptr;
  std::memcpy(end, "/stat", 6);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 1024> text{};
  const ssize_t got = ::read(file, text.data(), text.size());
  (void)::close(file);
  if (got <= 0) return std::nullopt;
  return parse_proc_stat({text.data(), static_cast<std::size_t>(got)});
}

}  // namespace

bool has_ended(const ProcessId& process, std::uint32_t own_namespace) {
  if (process.pid_namespace != own_namespace) return false;
  const auto facts = facts_of(process.pid);
  if (facts) return facts->is_dead() || facts->start_time != process.start_time;
  return ::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH;
}

ProcessId this_process() {
  ProcessId own{.pid = static_cast<std::uint32_t>(::getpid())};
  struct stat space{};
  if (::stat("/proc/self/ns/pid", &space) == 0) {
    own.pid_namespace = static_cast<std::uint32_t>(space.st_ino);
  }
  if (const auto facts = facts_of(own.pid)) own.start_time = facts->start_time;
  return own;
}

}  // namespace gflow::share
