// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
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

/// The number in "pid:[4026531836]"; 0 without /proc.
std::uint32_t own_pid_namespace() {
  std::array<char, 64> text{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", text.data(), text.size());
  std::string_view name(text.data(), length < 0 ? 0 : static_cast<std::size_t>(length));
  if (!name.starts_with("pid:[")) return 0;
  name.remove_prefix(5);
  std::uint32_t number = 0;
  (void)std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
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
  own.pid_namespace = own_pid_namespace();
  if (const auto facts = facts_of(own.pid)) own.start_time = facts->start_time;
  return own;
}

}  // namespace gflow::share
