// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/container_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "core/find_device.h"
#include "core/gpu_environment.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/paths.h"
#include "runner/gpu_share.h"
#include "share/account.h"
#include "share/account_file.h"

namespace gflow::deviceplugin {
namespace {

/// Where a container has its account, its turn and the library: libgflow-share.so looks there.
constexpr std::string_view kInContainer = share::kContainerDirectory;
constexpr std::string_view kLibrary = "libgflow-share.so";
/// Named there, a library is loaded whatever the environment is, and musl's programs pass it by.
constexpr std::string_view kPreloads = "ld.so.preload";
constexpr mode_t kForAll = 0666;  // of whatever user a container is; nobody else has it mounted
constexpr mode_t kToRead = 0644;

/// Whoever reads it finds all of it, or what was there.
Result<void> replace(const std::string& path, std::string_view content, mode_t mode) {
  const std::string fresh = path + ".new";
  GF_CHECK(os::write_file(fresh, content, mode));
  // What is made is less the umask.
  if (::chmod(fresh.c_str(), mode) != 0) return os::errno_error("open to containers", fresh);
  if (::rename(fresh.c_str(), path.c_str()) != 0) return os::errno_error("replace", path);
  return {};
}

void mount(Edits& edits, const std::string& from, std::string_view to, bool can_write) {
  edits.edits["mounts"].push_back(
      {{"hostPath", from},
       {"containerPath", to},
       {"options", {can_write ? "rw" : "ro", "nosuid", "nodev", "bind"}}});
}

void set(Edits& edits, std::string_view name, std::string_view value) {
  edits.edits["env"].push_back(fmt::format("{}={}", name, value));
}

std::string in_container(std::string_view name) { return fmt::format("{}/{}", kInContainer, name); }

std::string owner_text(const Owner& owner) {
  return fmt::format("{}\n{}\n{}\n", owner.name, owner.part, owner.uid);
}

/// With all that the account is made of.
std::string owner_text(const Grant& grant) {
  std::string text = owner_text(grant.owner);
  for (const DeviceGrant& one : grant.devices) {
    text += fmt::format(
        "{} {} {} {}\n", one.uuid, one.share.parts, one.share_limit.parts, one.memory.bytes);
  }
  return text;
}

std::optional<DeviceGrant> read_device(std::string_view line) {
  const auto words = split(line, ' ');
  if (words.size() != 4) return std::nullopt;
  const auto share = parse_number(words[1]);
  const auto limit = parse_number(words[2]);
  const auto memory = parse_number(words[3]);
  if (!share || !limit || !memory) return std::nullopt;
  return DeviceGrant{.uuid = std::string(words[0]),
                     .share = Share{static_cast<std::int32_t>(*share)},
                     .share_limit = Share{static_cast<std::int32_t>(*limit)},
                     .memory = Memory{static_cast<std::int64_t>(*memory)}};
}

/// What owner_text() wrote; nobody's of what is none.
Grant read_grant(std::string_view text) {
  constexpr std::size_t kOfOwner = 3;
  const auto lines = split(text, '\n');
  Grant grant;
  if (lines.size() <= kOfOwner) return grant;
  grant.owner = {std::string(lines[0]), std::string(lines[1]), std::string(lines[2])};
  for (std::size_t i = kOfOwner; i < lines.size(); ++i) {
    if (auto device = read_device(lines[i])) grant.devices.push_back(*std::move(device));
  }
  return grant;
}

/// What of `size` bytes is somebody's to write may have been made larger.
void cut(const std::string& path, std::size_t size) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  const auto most = static_cast<off_t>(size);
  if (facts.st_size > most) (void)!::truncate(path.c_str(), most);
}

/// Whether no container has it.
bool is_last_link(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0 && facts.st_nlink == 1;
}

std::string kind_of(std::string_view vendor) { return fmt::format("{}.com/gpu", vendor); }

/// The name of the file that those with a part of one device have in common; "" if this has parts
/// of several, which containers use without turns.
std::string turn_of(const std::vector<share::DeviceLimit>& limits) {
  const auto turns = runner::turns_of(limits);
  return turns.size() == 1 ? turns.front().file : "";
}

}  // namespace

std::string ContainerFiles::directory(const std::string& key) const {
  return places_.state + "/containers/" + key;
}

std::string ContainerFiles::copy_of_specification(const std::string& key) const {
  return directory(key) + "/specification";
}

std::string ContainerFiles::specification(const std::string& key) const {
  return places_.cdi + "/" + kind_.file_name(key);
}

Result<void> ContainerFiles::open(std::string& trouble) {
  GF_CHECK(os::make_own_directory(places_.state, 0755));
  GF_CHECK(os::make_directories(places_.state + "/containers", 0755));
  GF_CHECK(os::make_directories(places_.cdi, 0755));
  const auto own = os::helper_library(std::string(kLibrary));
  trouble = own ? "" : fmt::format("{} is not installed beside this program", kLibrary);
  if (!own) return {};
  GF_CHECK(os::make_own_directory(places_.library, 0755));
  const std::string installed = fmt::format("{}/{}", places_.library, kLibrary);
  const std::string content = GF_TRY(os::read_file(*own));
  const auto there = os::read_if_exists(installed);
  if (!there || *there != content) GF_CHECK(replace(installed, content, 0755));
  GF_CHECK(replace(
      fmt::format("{}/{}", places_.library, kPreloads), in_container(kLibrary) + "\n", kToRead));
  const std::string why = runner::why_not_loadable(installed, ::geteuid());
  if (!why.empty()) trouble = fmt::format("'{}' cannot be loaded: {}", installed, why);
  can_hold_ = trouble.empty();
  return {};
}

Result<void> ContainerFiles::write(const std::string& key,
                                   const Grant& grant,
                                   const Machine& machine) {
  GF_CHECK(os::remove_tree(directory(key)));
  GF_CHECK(os::make_directories(directory(key), 0755));
  GF_CHECK(make_account(key, grant));
  GF_CHECK(os::write_file(directory(key) + "/owner", owner_text(grant)));
  return write_specification(key, grant, machine);
}

bool ContainerFiles::is_written(const std::string& key, const Grant& grant) const {
  const auto kept = os::read_if_exists(directory(key) + "/owner");
  return kept && *kept == owner_text(grant);
}

Result<void> ContainerFiles::write_specification(const std::string& key,
                                                 const Grant& grant,
                                                 const Machine& machine) {
  GF_CHECK(os::make_directories(places_.cdi, 0755));
  const std::string text = cdi_text(kind_, key, GF_TRY(edits_of(key, grant, machine)));
  GF_CHECK(replace(copy_of_specification(key), text, kToRead));
  return replace(specification(key), text, kToRead);
}

Result<bool> ContainerFiles::renew(const std::string& key, const Owner& owner) {
  const auto kept = GF_TRY(os::read_if_exists(directory(key) + "/owner"));
  if (!kept || !kept->starts_with(owner_text(owner)) || !os::is_file(specification(key))) {
    return false;
  }
  const auto account = GF_TRY(os::read_if_exists(directory(key) + "/fresh"));
  if (account) {
    GF_CHECK(replace(directory(key) + "/" + share::kAccountName, *account, kForAll));
  }
  return true;
}

Result<Edits> ContainerFiles::edits_of(const std::string& key,
                                       const Grant& grant,
                                       const Machine& machine) {
  std::vector<const Device*> devices;
  std::vector<int> indices;
  for (const DeviceGrant& one : grant.devices) {
    devices.push_back(gflow::find_device(machine, one.index));
    indices.push_back(one.index);
  }
  Edits edits;
  const bool is_simulated = machine.source.starts_with("sim");
  if (!devices.empty() && !is_simulated) {
    const std::string kind = kind_of(devices.front()->vendor);
    edits = GF_TRY(vendor_edits({places_.vendor_cdi, places_.cdi}, kind, devices));
  }
  // Images of CUDA ask for all GPUs by it, which a runtime of NVIDIA would give them.
  set(edits, "NVIDIA_VISIBLE_DEVICES", "void");
  for (const auto& [name, value] : gpu_environment(grant.request, machine, indices)) {
    set(edits, name, value);
  }
  add_edits(edits, hold_to_part(key, grant));
  return edits;
}

std::vector<share::DeviceLimit> ContainerFiles::limits_of(const Grant& grant) const {
  if (!can_hold_) return {};
  return runner::device_limits({.devices = grant.devices, .mode = grant.request.mode});
}

Result<void> ContainerFiles::make_account(const std::string& key, const Grant& grant) {
  const auto limits = limits_of(grant);
  if (limits.empty()) return {};
  const auto account = share::encode_account(limits);
  if (!account) return fail(Code::Usage, account.error());
  const std::string own = directory(key);
  GF_CHECK(os::write_file(own + "/fresh", *account));
  GF_CHECK(replace(own + "/" + share::kAccountName, *account, kForAll));
  if (const std::string turn = turn_of(limits); !turn.empty()) {
    GF_CHECK(link_turn(turn, own + "/" + share::kTurnName));
  }
  if (kind_ != kClaims) return {};
  // It is of several containers, or of one that starts again.
  return replace(own + "/" + share::kEndedName, share::encode_ended(), kToRead);
}

Edits ContainerFiles::hold_to_part(const std::string& key, const Grant& grant) const {
  const auto limits = limits_of(grant);
  Edits edits;
  if (limits.empty()) return edits;
  const std::string own = directory(key);
  if (!turn_of(limits).empty()) {
    mount(edits, own + "/" + share::kTurnName, in_container(share::kTurnName), true);
  }
  mount(edits, own + "/" + share::kAccountName, in_container(share::kAccountName), true);
  if (kind_ == kClaims) {
    mount(edits, own + "/" + share::kEndedName, in_container(share::kEndedName), false);
  }
  mount(edits, fmt::format("{}/{}", places_.library, kLibrary), in_container(kLibrary), false);
  mount(edits, fmt::format("{}/{}", places_.library, kPreloads), "/etc/ld.so.preload", false);
  return edits;
}

/// One file for all containers with a part of the device, which they lock.
Result<void> ContainerFiles::link_turn(const std::string& name, const std::string& own) const {
  const std::string path = places_.state + "/" + name;
  const os::Fd file = GF_TRY(os::open_file(path, O_WRONLY | O_CREAT | O_NOFOLLOW, kForAll));
  if (::fchmod(file.get(), kForAll) != 0) return os::errno_error("open to containers", path);
  if (::link(path.c_str(), own.c_str()) != 0) return os::errno_error("link", own);
  return {};
}

void ContainerFiles::forget(const std::string& key) {
  (void)::unlink(copy_of_specification(key).c_str());
  (void)::unlink(specification(key).c_str());
}

Result<void> ContainerFiles::remove(const std::string& key) {
  forget(key);
  return os::remove_tree(directory(key));
}

Result<std::map<std::string, Grant>> ContainerFiles::grants() const {
  std::map<std::string, Grant> found;
  const auto keys = os::names_in(places_.state + "/containers");
  if (!keys && keys.error().code == Code::NotFound) return found;
  if (!keys) return std::unexpected(keys.error());
  for (const std::string& key : *keys) {
    const auto kept = GF_TRY(os::read_if_exists(directory(key) + "/owner"));
    found.emplace(key, read_grant(kept.value_or(std::string())));
  }
  return found;
}

/// A runtime looks for them where others may remove them.
Result<void> ContainerFiles::put_back(const std::set<std::string>& keys) const {
  for (const std::string& key : keys) {
    if (os::is_file(specification(key))) continue;
    const auto text = GF_TRY(os::read_if_exists(copy_of_specification(key)));
    if (!text) continue;
    GF_CHECK(os::make_directories(places_.cdi, 0755));
    GF_CHECK(replace(specification(key), *text, kToRead));
  }
  return {};
}

Result<void> ContainerFiles::keep_only(const std::set<std::string>& keys) {
  Result<void> done = put_back(keys);
  const auto remove = [&done](const std::string& path) {
    auto removed = os::remove_tree(path);
    if (!removed) done = std::move(removed);
  };
  for (const std::string& name : GF_TRY(os::names_in(places_.cdi))) {
    const std::string key = kind_.key_of_file(name);
    const bool is_kept = key.empty() || (keys.contains(key) && name == kind_.file_name(key));
    if (!is_kept) remove(places_.cdi + "/" + name);
  }
  for (const std::string& key : GF_TRY(os::names_in(places_.state + "/containers"))) {
    if (!keys.contains(key)) remove(directory(key));
    cut(directory(key) + "/" + share::kAccountName, sizeof(share::Account));
  }
  for (const std::string& name : GF_TRY(os::names_in(places_.state))) {
    if (!name.starts_with("turn.")) continue;
    const std::string path = places_.state + "/" + name;
    cut(path, 0);
    if (is_last_link(path)) remove(path);
  }
  return done;
}

}  // namespace gflow::deviceplugin
