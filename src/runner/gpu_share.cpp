// SPDX-License-Identifier: Apache-2.0
#include "runner/gpu_share.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "os/fd.h"
#include "os/user.h"
#include "share/account.h"
#include "share/gang.h"

namespace gflow::runner {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD=";
constexpr std::string_view kDirectory = "GFLOW_SHARE_DIR=";
constexpr std::string_view kSanitizer = "ASAN_OPTIONS=";
constexpr std::string_view kAnyOrder = "verify_asan_link_order=0";
constexpr std::string_view kLibrary = "/libgflow-share.so";
constexpr std::string_view kSeparators = ": ";

/// Takes a variable out: its value, "" if it is not set.
std::string take(std::vector<std::string>& environment, std::string_view start) {
  const auto is_it = [start](const std::string& text) { return text.starts_with(start); };
  const auto found = std::ranges::find_if(environment, is_it);
  if (found == environment.end()) return "";
  std::string value = found->substr(start.size());
  std::erase_if(environment, is_it);
  return value;
}

/// The libraries of a value of LD_PRELOAD but this one, of whatever gflow.
std::vector<std::string> other_libraries(std::string_view value) {
  std::vector<std::string> others;
  while (!value.empty()) {
    const std::size_t end = std::min(value.find_first_of(kSeparators), value.size());
    const std::string_view library = value.substr(0, end);
    if (!library.empty() && !library.ends_with(kLibrary)) others.emplace_back(library);
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return others;
}

/// Opens and maps it: 0, or what keeps ld.so from it. A file system mounted noexec does, too.
int try_to_load(const std::string& library) {
  const os::Fd file(::open(library.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return errno;
  std::array<char, 4> start{};
  const ssize_t got = ::pread(file.get(), start.data(), start.size(), 0);
  if (got < 0) return errno;
  if (std::string_view(start.data(), static_cast<std::size_t>(got)) != "\177ELF") return ENOEXEC;
  void* const mapped =
      ::mmap(nullptr, start.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) return errno;
  (void)::munmap(mapped, start.size());
  return 0;
}

/// For the calling thread alone, which is why the C library is passed by.
bool take_rights_of(std::uint32_t uid) {
  const os::Account account = os::account_of(uid);
  const std::vector<std::uint32_t> groups = os::groups_of(account);
  if (::syscall(SYS_setgroups, groups.size(), groups.data()) != 0) return false;
  (void)::setfsgid(account.gid);
  (void)::setfsuid(uid);
  return static_cast<std::uint32_t>(::setfsgid(account.gid)) == account.gid &&
         static_cast<std::uint32_t>(::setfsuid(uid)) == uid;
}

/// By a thread that ends with the rights it took.
int try_to_load_as(std::uint32_t uid, const std::string& library) {
  int error = EAGAIN;
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  try {
    std::thread([&] { error = take_rights_of(uid) ? try_to_load(library) : EPERM; }).join();
  } catch (const std::system_error&) {
    return error;  // there is no room for a thread
  }
  // Who changes its rights loses that for the whole process.
  if (dumpable == 1) (void)::prctl(PR_SET_DUMPABLE, 1);
  return error;
}

}  // namespace

std::vector<share::DeviceLimit> device_limits(const LaunchOrder& order) {
  if (order.mode == GpuMode::Whole || order.only_holds) return {};
  std::vector<share::DeviceLimit> limits;
  for (const DeviceGrant& grant : order.devices) {
    const bool can_be_kept =
        grant.vendor == "nvidia" && !grant.uuid.empty() && grant.memory > Memory{};
    if (!can_be_kept) return {};
    share::DeviceLimit limit{.uuid = grant.uuid,
                             .bytes = static_cast<std::uint64_t>(grant.memory.bytes)};
    if (order.mode == GpuMode::Fraction) {
      const Share most = std::max(grant.share, grant.share_limit);
      limit.share = static_cast<std::uint64_t>(grant.share.parts);
      limit.share_limit = static_cast<std::uint64_t>(most.parts);
    }
    limits.push_back(std::move(limit));
  }
  return limits;
}

std::vector<TurnFile> turns_of(const std::vector<share::DeviceLimit>& limits) {
  const auto is_usual = [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
           (letter >= 'A' && letter <= 'Z') || letter == '-';
  };
  std::vector<TurnFile> turns;
  for (const share::DeviceLimit& limit : limits) {
    if (limit.share >= share::kWholeShare || !std::ranges::all_of(limit.uuid, is_usual)) return {};
    const std::string name = limits.size() == 1 ? share::kTurnName : share::turn_name(turns.size());
    turns.push_back({.file = "turn." + limit.uuid, .name = name});
  }
  return turns;
}

bool can_be_preloaded(const std::string& library) {
  return library.starts_with('/') && library.find_first_of(kSeparators) == std::string::npos;
}

std::string why_not_loadable(const std::string& library, std::uint32_t uid) {
  const int error = uid == ::geteuid() ? try_to_load(library) : try_to_load_as(uid, library);
  return error == 0 ? "" : std::generic_category().message(error);
}

std::vector<std::string> with_interposer(std::vector<std::string> environment,
                                         const std::string& library,
                                         const std::string& directory) {
  std::vector<std::string> libraries = other_libraries(take(environment, kPreload));
  libraries.push_back(library);
  environment.push_back(std::string(kPreload) + join(libraries, ":"));
  (void)take(environment, kDirectory);
  environment.push_back(std::string(kDirectory) + directory);
  // A program with AddressSanitizer's shared runtime does not start where another library is before
  // it, unless told that it may; this one has nothing of what the runtime takes over.
  std::string options = take(environment, kSanitizer);
  if (!options.empty()) options += ':';
  environment.push_back(std::string(kSanitizer) + options + std::string(kAnyOrder));
  return environment;
}

std::vector<std::string> without_interposer(std::vector<std::string> environment) {
  if (!take(environment, kDirectory).empty()) {
    std::string options = take(environment, kSanitizer);
    if (options.ends_with(kAnyOrder)) options.resize(options.size() - kAnyOrder.size());
    if (options.ends_with(':')) options.pop_back();
    if (!options.empty()) environment.push_back(std::string(kSanitizer) + options);
  }
  const auto libraries = other_libraries(take(environment, kPreload));
  if (!libraries.empty()) environment.push_back(std::string(kPreload) + join(libraries, ":"));
  return environment;
}

}  // namespace gflow::runner
