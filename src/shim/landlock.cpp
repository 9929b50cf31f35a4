// SPDX-License-Identifier: Apache-2.0
#include "shim/landlock.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shim/fd.h"

namespace gflow::shim {
namespace {

constexpr std::uint64_t kOpening = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
/// Of directories alone. Who does not ask for it may rename and link nothing from one to another.
constexpr std::uint64_t kMoving = LANDLOCK_ACCESS_FS_REFER;
/// What a descriptor can be used for that is opened neither to read nor to write (access mode 3,
/// open(2)): since the fifth version, Linux 6.10.
constexpr std::uint64_t kControlling = std::uint64_t{1} << 15;  // LANDLOCK_ACCESS_FS_IOCTL_DEV
constexpr long kVersionWithControlling = 5;

struct CloseListing {
  void operator()(DIR* listing) const { (void)::closedir(listing); }
};

/// An inode: by this Landlock knows it, whatever path leads there.
struct Place {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

struct Entry {
  std::string path;
  Fd file;  ///< to find it by, not opened
  Place place;
  std::uint16_t mode = 0;
  std::uint32_t device_major = 0;  ///< of a device node
  std::uint32_t device_minor = 0;
};

/// Nothing, with errno, of what cannot be looked at. A file system that does not answer is asked
/// nothing.
std::optional<Entry> look_at(std::string path) {
  Fd file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct statx facts{};
  constexpr int kHow = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  constexpr unsigned kWhat = STATX_TYPE | STATX_MODE | STATX_INO;
  if (!file.valid() || ::statx(file.get(), "", kHow, kWhat, &facts) != 0) return std::nullopt;
  return Entry{.path = std::move(path),
               .file = std::move(file),
               .place = {facts.stx_dev_major, facts.stx_dev_minor, facts.stx_ino},
               .mode = facts.stx_mode,
               .device_major = facts.stx_rdev_major,
               .device_minor = facts.stx_rdev_minor};
}

/// What users fill themselves, as /dev/shm. It has no node of a GPU: to make one takes root, and in
/// what users mount device nodes open nothing.
bool is_filled_by_users(const Entry& directory) {
  return (directory.mode & (S_IWGRP | S_IWOTH)) != 0;
}

/// What is in a directory; empty if it cannot be read.
std::optional<std::vector<std::string>> paths_in(const std::string& directory) {
  const std::unique_ptr<DIR, CloseListing> listing(::opendir(directory.c_str()));
  if (listing == nullptr) return std::nullopt;
  std::vector<std::string> paths;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this directory open
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name(entry->d_name);
    if (name == "." || name == "..") continue;
    paths.push_back(directory == "/" ? "/" + std::string(name)
                                     : directory + "/" + std::string(name));
  }
  return paths;
}

/// Lets a process open all there is but what a filter denies in /dev. Rules of Landlock allow and
/// never deny, and what is allowed of a directory is allowed of all below it, by whatever mount one
/// comes there: so no directory above a denied node is allowed as a whole, under none of its names.
class Rules {
 public:
  Rules(int ruleset, std::uint64_t access, const DeviceFilter& filter)
      : ruleset_(ruleset), access_(access), filter_(filter) {}

  [[nodiscard]] bool add() {
    for (const char* directory : {"/", "/dev"}) {  // also where there is no denied node yet
      if (const auto entry = look_at(directory)) above_.push_back(entry->place);
    }
    (void)find_denied("/dev");
    return allow_below("/");
  }
  /// Whether one of the denied nodes can be opened all the same.
  [[nodiscard]] bool have_hole() const {
    return std::ranges::any_of(denied_, [](const std::string& path) {
      return Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)).valid();
    });
  }

 private:
  [[nodiscard]] bool denies(const Entry& entry) const {
    return S_ISCHR(entry.mode) && filter_.denies(entry.device_major, entry.device_minor);
  }
  [[nodiscard]] bool find_denied(const std::string& directory);
  [[nodiscard]] bool allow_below(const std::string& directory);
  [[nodiscard]] bool allow(const Entry& entry) const;

  int ruleset_;
  std::uint64_t access_;
  const DeviceFilter& filter_;
  std::vector<Place> above_;         ///< directories that have a denied node somewhere in them
  std::vector<std::string> denied_;  ///< the nodes that are there
};

/// Whether there is, or may be, one in it. In what users fill nothing is looked for: one of them
/// could have all others wait there, or close it to them by a directory that they cannot read.
bool Rules::find_denied(const std::string& directory) {
  auto paths = paths_in(directory);
  if (!paths) return true;  // who knows a name in it may open that
  bool has_some = false;
  for (std::string& path : *paths) {
    const auto entry = look_at(std::move(path));
    if (!entry) {
      has_some = has_some || errno != ENOENT;
    } else if (denies(*entry)) {
      denied_.push_back(entry->path);
      has_some = true;
    } else if (S_ISDIR(entry->mode) && !is_filled_by_users(*entry) && find_denied(entry->path)) {
      above_.push_back(entry->place);
      has_some = true;
    }
  }
  return has_some;
}

bool Rules::allow_below(const std::string& directory) {
  auto paths = paths_in(directory).value_or(std::vector<std::string>{});
  return std::ranges::all_of(paths, [this](std::string& path) {
    const auto entry = look_at(std::move(path));
    if (!entry || S_ISLNK(entry->mode) || denies(*entry)) return true;
    const bool is_above = std::ranges::find(above_, entry->place) != above_.end();
    return is_above ? allow_below(entry->path) : allow(*entry);
  });
}

bool Rules::allow(const Entry& entry) const {
  const std::uint64_t access = S_ISDIR(entry.mode) ? access_ : access_ & ~kMoving;
  const landlock_path_beneath_attr rule{.allowed_access = access, .parent_fd = entry.file.get()};
  return ::syscall(SYS_landlock_add_rule, ruleset_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

}  // namespace

bool keep_from_devices(const DeviceFilter& filter) {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 0) return false;
  const std::uint64_t controlling = version < kVersionWithControlling ? 0 : kControlling;
  const landlock_ruleset_attr handled{.handled_access_fs = kOpening | kMoving | controlling};
  const Fd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
  if (!ruleset.valid()) return false;
  Rules rules(ruleset.get(), handled.handled_access_fs, filter);
  if (!rules.add() || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return false;
  }
  errno = ENOTSUP;
  return !rules.have_hole();
}

}  // namespace gflow::shim
