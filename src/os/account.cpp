// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/text.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::os {

/// "name:password:uid:gid:of whom:home:shell". Lines that are none, and of uids that are no numbers
/// ("+" of NIS), are passed over.
std::optional<Account> account_in(std::string_view passwd, std::uint32_t uid) {
  for (const std::string_view line : split(passwd, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 6 || parse_number(fields[2]) != uid) continue;
    const auto gid = parse_number(fields[3]);
    if (!gid) continue;
    return Account{
        uid, static_cast<std::uint32_t>(*gid), std::string(fields[0]), std::string(fields[5])};
  }
  return std::nullopt;
}

#ifdef GFLOW_PASSWD_ALONE
/// Whoever else knows accounts (LDAP, sssd, systemd) is a library, which a program without a loader
/// must not load: it brings the C library of the machine beside the one linked in.
std::optional<Account> find_account(std::uint32_t uid) {
  return account_in(read_file("/etc/passwd").value_or(""), uid);
}
#else
std::optional<Account> find_account(std::uint32_t uid) {
  constexpr std::size_t kMostOfAnEntry = std::size_t{16} << 20;
  for (std::size_t size = 16384; size <= kMostOfAnEntry; size *= 4) {
    std::vector<char> buffer(size);
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == ERANGE) continue;
    if (found == nullptr) return std::nullopt;
    return Account{uid, found->pw_gid, found->pw_name, found->pw_dir};
  }
  return std::nullopt;
}
#endif

Account nameless_account(std::uint32_t uid) { return {uid, uid, fmt::format("uid-{}", uid), "/"}; }

Account account_of(std::uint32_t uid) {
  const auto found = find_account(uid);
  return found ? *found : nameless_account(uid);
}

Account own_account() { return account_of(::getuid()); }

}  // namespace gflow::os
