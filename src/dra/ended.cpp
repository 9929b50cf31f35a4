// SPDX-License-Identifier: Apache-2.0
#include "dra/ended.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/proc_text.h"
#include "base/text.h"
#include "os/fd.h"
#include "os/file.h"
#include "share/account_file.h"

namespace gflow::dra {
namespace {

/// A process with a slot, and which.
struct Occupant {
  std::size_t slot;
  share::ProcessId process;
};

/// Of a process that is gone there is none.
template <typename Value>
using IfThere = Result<std::optional<Value>>;

/// Not every process may be looked into, not even by root.
constexpr std::uint32_t kHidden = 0;

/// Inode of the pid namespace, or kHidden.
IfThere<std::uint32_t> namespace_of(const std::string& process) {
  std::array<char, 64> text{};
  const std::string path = process + "/ns/pid";
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  if (length < 0) {
    if (errno == EACCES || errno == EPERM) return kHidden;
    if (errno == ENOENT || errno == ESRCH) return std::nullopt;
    return os::errno_error("read", path);
  }
  std::string_view name(text.data(), static_cast<std::size_t>(length));
  constexpr std::string_view kStart = "pid:[";
  if (name.starts_with(kStart) && name.ends_with(']')) {
    name.remove_prefix(kStart.size());
    name.remove_suffix(1);
    if (const auto number = parse_number(name)) return static_cast<std::uint32_t>(*number);
  }
  return fail(Code::Failure, fmt::format("'{}' is no pid namespace", printable(name)));
}

/// The pid in the innermost namespace: the last of "NSpid: 4711 12".
std::optional<std::uint32_t> inner_pid(std::string_view status) {
  const std::size_t at = status.find("\nNSpid:");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view line = trim(status.substr(at + 1, status.find('\n', at + 1) - at - 1));
  const auto pid = parse_number(line.substr(line.find_last_of("\t ") + 1));
  return pid ? std::optional(static_cast<std::uint32_t>(*pid)) : std::nullopt;
}

/// As it knows itself; one that has ended and is not waited for is gone.
IfThere<share::ProcessId> find_process(const std::string& process) {
  const auto space = GF_TRY(namespace_of(process));
  const auto stat = os::read_file(process + "/stat");
  const auto status = os::read_file(process + "/status");
  if (!space || !stat || !status) return std::nullopt;
  const auto facts = parse_proc_stat(*stat);
  const auto pid = inner_pid(*status);
  if (!facts || !pid) return fail(Code::Failure, fmt::format("'{}' cannot be read", process));
  if (facts->is_dead()) return std::nullopt;
  return share::ProcessId{.pid = *pid, .pid_namespace = *space, .start_time = facts->start_time};
}

ProcessesSeen::Key key_of(const share::ProcessId& process) {
  return {process.pid_namespace, process.pid, process.start_time};
}

constexpr std::size_t kEntry = sizeof(share::EndedProcess);
using Entry = std::array<char, kEntry>;

Entry entry_of(const share::ProcessId& process) {
  static_assert(sizeof(process) == kEntry && offsetof(share::ProcessId, start_time) == 8);
  Entry entry{};
  std::memcpy(entry.data(), &process, kEntry);
  return entry;
}

std::string ended_path(const std::string& directory) {
  return fmt::format("{}/{}", directory, share::kEndedName);
}

/// Leaves those that were told to have ended out.
void leave_out_told(const std::string& directory, std::vector<Occupant>& occupants) {
  const std::string told = os::read_file(ended_path(directory)).value_or(std::string());
  std::erase_if(occupants, [&told](const Occupant& one) {
    const Entry entry = entry_of(one.process);
    return told.size() >= (one.slot + 1) * kEntry &&
           std::string_view(told).substr(one.slot * kEntry, kEntry) ==
               std::string_view(entry.data(), kEntry);
  });
}

/// Of what a container may have written anything into.
std::vector<Occupant> occupants_of(const std::string& directory) {
  const auto bytes = os::read_file(fmt::format("{}/{}", directory, share::kAccountName));
  if (!bytes || bytes->size() != sizeof(share::Account)) return {};
  const auto account = std::make_unique<share::Account>();
  std::memcpy(static_cast<void*>(account.get()), bytes->data(), sizeof(share::Account));
  if (!share::AccountBook::is_account(*account, sizeof(share::Account))) return {};
  const share::AccountBook book(*account);
  std::vector<Occupant> found;
  for (std::size_t slot = 0; slot < share::kMaxProcesses; ++slot) {
    const share::ProcessId process = book.process_in(slot);
    if (process.pid != 0 && process.is_known()) found.push_back({slot, process});
  }
  return found;
}

void tell(const std::string& directory, const std::vector<Occupant>& ended) {
  if (ended.empty()) return;
  const os::Fd file(::open(ended_path(directory).c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  for (const auto& [slot, process] : ended) {
    const Entry entry = entry_of(process);
    // Told again at the next look where it cannot be.
    (void)!::pwrite(file.get(), entry.data(), kEntry, static_cast<off_t>(slot * kEntry));
  }
}

}  // namespace

Result<void> ProcessesSeen::look() {
  seen_.clear();
  sees_others_ = false;
  const auto own = GF_TRY(namespace_of("/proc/self"));
  for (const std::string& name : GF_TRY(os::names_in("/proc"))) {
    if (!parse_number(name)) continue;
    std::string path = "/proc/" + name;
    const auto process = GF_TRY(find_process(path));
    if (!process) continue;
    const std::uint32_t space = process->pid_namespace;
    sees_others_ = sees_others_ || (space != kHidden && space != own);
    seen_.emplace(key_of(*process), std::move(path));
  }
  return {};
}

bool ProcessesSeen::is_still_there(const share::ProcessId& process) const {
  const auto at = seen_.find(key_of(process));
  if (at == seen_.end()) return false;
  const auto found = find_process(at->second);
  return found && *found && **found == process;
}

bool ProcessesSeen::has_ended(const share::ProcessId& process) const {
  share::ProcessId hidden = process;
  hidden.pid_namespace = kHidden;
  return sees_others_ && !seen_.contains(key_of(process)) && !seen_.contains(key_of(hidden));
}

void EndedTeller::look(const std::vector<std::string>& directories) {
  std::map<std::string, std::vector<Occupant>> unsure;
  for (const std::string& directory : directories) {
    std::vector<Occupant> occupants = occupants_of(directory);
    leave_out_told(directory, occupants);
    std::erase_if(occupants,
                  [this](const Occupant& one) { return seen_.is_still_there(one.process); });
    if (!occupants.empty()) unsure.emplace(directory, std::move(occupants));
  }
  // They were there before it is looked for them.
  if (unsure.empty() || !seen_.look()) return;
  for (auto& [directory, occupants] : unsure) {
    std::erase_if(occupants, [this](const Occupant& one) { return !seen_.has_ended(one.process); });
    tell(directory, occupants);
  }
}

}  // namespace gflow::dra
