// SPDX-License-Identifier: Apache-2.0
#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <vector>

#include "os/user.h"

namespace gflow::os {

std::vector<std::uint32_t> groups_of(const Account& account) {
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  if (::getgrouplist(account.name.c_str(), account.gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(count));  // it said how many there are
    if (::getgrouplist(account.name.c_str(), account.gid, groups.data(), &count) < 0) count = 0;
  }
  groups.resize(static_cast<std::size_t>(count));
  if (groups.empty()) groups.push_back(account.gid);
  return {groups.begin(), groups.end()};
}

std::optional<std::uint32_t> user_id(const std::string& name) {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  (void)::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::nullopt : std::optional<std::uint32_t>(found->pw_uid);
}

std::optional<std::uint32_t> group_id(const std::string& name) {
  // A group may have thousands of members.
  constexpr std::size_t kLargest = std::size_t{16} << 20;
  for (std::size_t size = 16384; size <= kLargest; size *= 4) {
    std::vector<char> buffer(size);
    group entry{};
    group* found = nullptr;
    if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == ERANGE)
      continue;
    return found == nullptr ? std::nullopt : std::optional<std::uint32_t>(found->gr_gid);
  }
  return std::nullopt;
}

}  // namespace gflow::os
