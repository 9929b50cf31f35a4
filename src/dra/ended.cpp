// SPDX-License-Identifier: Apache-2.0
#include "dra/ended.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <ranges>
#include <string_view>

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

/// Inode of the pid namespace; empty where it is gone, or not to be looked into.
std::optional<std::uint32_t> namespace_of(const std::string& process) {
  std::array<char, 64> text{};
  const ssize_t length = ::readlink((process + "/ns/pid").c_str(), text.data(), text.size());
  std::string_view name(text.data(), length < 0 ? 0 : static_cast<std::size_t>(length));
  if (!name.starts_with("pid:[") || !name.ends_with(']')) return std::nullopt;
  name.remove_prefix(5);
  name.remove_suffix(1);
  const auto number = parse_number(name);
  return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

/// The pid in the innermost namespace, the last of "NSpid: 4711 12", of one that has not ended.
std::optional<std::uint32_t> inner_pid(const std::string& process) {
  const auto status = os::read_file(process + "/status");
  if (!status || status->find("\nState:\tZ") != std::string::npos) return std::nullopt;
  const std::size_t at = status->find("\nNSpid:");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t end = status->find('\n', at + 1);
  const std::string_view line = trim(std::string_view(*status).substr(at + 1, end - at - 1));
  const auto pid = parse_number(line.substr(line.find_last_of("\t ") + 1));
  return pid ? std::optional(static_cast<std::uint32_t>(*pid)) : std::nullopt;
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
  const auto own = namespace_of("/proc/self");
  for (const std::string& name : GF_TRY(os::names_in("/proc"))) {
    if (!parse_number(name)) continue;
    const std::string process = "/proc/" + name;
    const auto space = namespace_of(process);
    const auto pid = inner_pid(process);
    if (!space || !pid) continue;
    sees_others_ = sees_others_ || space != own;
    seen_.emplace(Key{*space, *pid}, process);
  }
  return {};
}

bool ProcessesSeen::is_still_there(const share::ProcessId& process) const {
  const auto at = seen_.find({process.pid_namespace, process.pid});
  if (at == seen_.end() || namespace_of(at->second) != process.pid_namespace) return false;
  return inner_pid(at->second) == process.pid;
}

bool ProcessesSeen::has_ended(const share::ProcessId& process) const {
  return sees_others_ && !seen_.contains({process.pid_namespace, process.pid});
}

bool EndedTeller::look(const std::vector<std::string>& directories) {
  std::map<std::string, std::vector<Occupant>> unsure;
  bool has_any = false;
  for (const std::string& directory : directories) {
    std::vector<Occupant> occupants = occupants_of(directory);
    has_any = has_any || !occupants.empty();
    leave_out_told(directory, occupants);
    std::erase_if(occupants,
                  [this](const Occupant& one) { return seen_.is_still_there(one.process); });
    if (!occupants.empty()) unsure.emplace(directory, std::move(occupants));
  }
  // They were there before it is looked for them.
  if (unsure.empty() || !seen_.look()) return has_any;
  for (auto& [directory, occupants] : unsure) {
    std::erase_if(occupants, [this](const Occupant& one) { return !seen_.has_ended(one.process); });
    tell(directory, occupants);
  }
  return has_any;
}

}  // namespace gflow::dra
