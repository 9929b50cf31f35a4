// SPDX-License-Identifier: Apache-2.0
#include "os/lock_holder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/translate.h"
#include "os/file.h"
#include "os/process.h"

namespace gflow::os {
namespace {

/// Whether a descriptor of the process holds a lock on this very file. The file it leads to is not
/// looked at: it may be anybody's by now.
bool holds(int pid, const std::string& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) != 0) return false;
  const std::string directory = fmt::format("/proc/{}/fdinfo", pid);
  const auto names = names_in(directory);
  if (!names) return false;
  // "lock:  1: FLOCK  ADVISORY  WRITE 812 fe:01:262145 0 EOF"
  const std::string inode = fmt::format(":{} 0 EOF", file.st_ino);
  for (const std::string& name : *names) {
    const auto text = read_file(directory + "/" + name);
    if (text && text->contains("FLOCK") && text->contains(inode)) return true;
  }
  return false;
}

/// The one that a line of /proc/locks names, if it is about a lock that is held on this file:
/// "1: FLOCK  ADVISORY  WRITE 812 fe:01:262145 0 EOF". "1: -> FLOCK" is one that is waited for.
std::optional<int> owner_in(std::string_view line, ino_t inode) {
  std::vector<std::string_view> words = split(line, ' ');
  std::erase(words, "");
  constexpr std::size_t kOwner = 4;
  constexpr std::size_t kFile = 5;
  if (words.size() <= kFile || words[1] != "FLOCK") return std::nullopt;
  if (!words[kFile].ends_with(fmt::format(":{}", inode))) return std::nullopt;
  const auto pid = parse_number(words[kOwner]);
  return pid && *pid > 0 ? std::optional(static_cast<int>(*pid)) : std::nullopt;
}

std::string state_text(int pid, char state) {
  switch (state) {
    case 'T':
      return tr_format("it is stopped (T): 'kill -CONT {}' resumes it", pid);
    case 't':
      return tr("it is stopped by a debugger (t)");
    case 'D':
      return tr("it is waiting for a disk (D)");
    case 'R':
      return tr("it is busy (R)");
    case 'Z':
      return tr("it has ended (Z)");
    case '?':
      return tr("its state is not known");
    default:
      return tr_format("its state is {}", state);
  }
}

}  // namespace

std::string lock_text(const LockHolder& holder) {
  std::string text = fmt::format("{}\n{}\n", holder.pid, holder.socket);
  for (const std::string& argument : holder.arguments) {
    if (!argument.contains('\n')) text += argument + '\n';
  }
  return text;
}

std::optional<LockHolder> read_lock(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  const auto lines = split(*text, '\n');
  const auto pid = parse_number(trim(lines.front()));
  if (!pid || *pid == 0) return std::nullopt;
  LockHolder holder{static_cast<int>(*pid), lines.size() > 1 ? std::string(lines[1]) : ""};
  for (std::size_t i = 2; i < lines.size(); ++i) {
    if (lines[i].starts_with("--")) holder.arguments.emplace_back(lines[i]);
  }
  return holder;
}

std::optional<LockHolder> lock_holder(const std::string& path) {
  auto holder = read_lock(path);
  return holder && holds(holder->pid, path) ? holder : std::nullopt;
}

std::optional<int> lock_owner(const std::string& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) != 0) return std::nullopt;
  const auto locks = read_file("/proc/locks");
  if (!locks) return std::nullopt;
  for (const std::string_view line : split(*locks, '\n')) {
    if (const auto owner = owner_in(line, file.st_ino)) return owner;
  }
  return std::nullopt;
}

char process_state(int pid) {
  const auto facts = process_facts(pid);
  return facts ? facts->state : '?';
}

bool is_dying(int pid) {
  constexpr std::uint64_t kKilled = std::uint64_t{1} << (SIGKILL - 1);
  const auto status = read_file(fmt::format("/proc/{}/status", pid)).value_or("");
  for (const std::string_view name : {"\nSigPnd:\t", "\nShdPnd:\t"}) {
    const std::size_t at = status.find(name);
    if (at == std::string::npos) continue;
    std::uint64_t pending = 0;
    const char* const digits = status.c_str() + at + name.size();
    (void)std::from_chars(digits, status.c_str() + status.size(), pending, 16);
    if ((pending & kKilled) != 0) return true;
  }
  const auto facts = process_facts(pid);
  return facts && (facts->is_dead() || facts->exiting);
}

std::string silence_text(int pid) {
  return tr_format("gflowd (pid {}) does not answer; {}", pid, state_text(pid, process_state(pid)));
}

}  // namespace gflow::os
