// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "os/user.h"

namespace gflow::os {
namespace {

constexpr std::size_t kMostOfAnEntry = 16384;

#ifdef GFLOW_PASSWD_ALONE
/// Of /etc/passwd. Whoever else knows accounts (LDAP, sssd, systemd) is a library, which a program
/// without a loader must not load: it brings the C library of the machine beside the one linked in.
Account find(std::uint32_t uid, Account otherwise) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/etc/passwd", "re"),
                                                             &std::fclose);
  std::vector<char> buffer(kMostOfAnEntry);
  passwd entry{};
  passwd* found = nullptr;
  while (file && ::fgetpwent_r(file.get(), &entry, buffer.data(), buffer.size(), &found) == 0) {
    if (found->pw_uid == uid) return {uid, found->pw_gid, found->pw_name, found->pw_dir};
  }
  return otherwise;
}
#else
Account find(std::uint32_t uid, Account otherwise) {
  std::vector<char> buffer(kMostOfAnEntry);
  passwd entry{};
  passwd* found = nullptr;
  (void)::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return otherwise;
  return {uid, found->pw_gid, found->pw_name, found->pw_dir};
}
#endif

}  // namespace

Account account_of(std::uint32_t uid) {
  return find(uid, {uid, uid, fmt::format("uid-{}", uid), "/"});
}

Account own_account() { return account_of(::getuid()); }

}  // namespace gflow::os
