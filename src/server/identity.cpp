// SPDX-License-Identifier: Apache-2.0
#include "server/identity.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gflow::server {

bool Identity::Members::contain(const os::Peer& peer) const {
  return users.contains(peer.uid) || std::ranges::any_of(peer.groups, [this](std::uint32_t gid) {
           return groups.contains(gid);
         });
}

Identity::Members Identity::look_up(const std::string& setting,
                                    const std::vector<std::string>& names,
                                    std::vector<std::string>& unknown) {
  Members members;
  for (const std::string& name : names) {
    const bool group = name.starts_with('@');
    const auto id = group ? os::group_id(name.substr(1)) : os::user_id(name);
    if (id) {
      (group ? members.groups : members.users).insert(*id);
    } else {
      unknown.push_back(fmt::format("{}: this machine has no {} '{}'",
                                    setting,
                                    group ? "group" : "user",
                                    printable(group ? name.substr(1) : name)));
    }
  }
  return members;
}

std::vector<std::string> Identity::configure(const RoleNames& roles,
                                             const std::vector<std::string>& projects) {
  std::vector<std::string> unknown;
  administrators_ = look_up("access.administrators", roles.administrators, unknown);
  operators_ = look_up("access.operators", roles.operators, unknown);
  projects_.clear();
  accounts_.clear();
  for (const std::string& project : projects) {
    if (const auto gid = os::group_id(project)) {
      projects_[*gid] = project;
    } else {
      unknown.push_back(
          fmt::format("priority.projects: this machine has no group '{}'", printable(project)));
    }
  }
  return unknown;
}

Role Identity::role_of(const os::Peer& peer) const {
  if (peer.uid == 0 || peer.uid == own_uid_ || administrators_.contain(peer)) {
    return Role::Administrator;
  }
  return operators_.contain(peer) ? Role::Operator : Role::User;
}

/// Whoever knows accounts may not have been there yet (sssd, LDAP): one that was not found is
/// looked up again, and not at each request, as the loop waits for the answer.
std::optional<os::Account> Identity::account_of(std::uint32_t uid) {
  constexpr std::chrono::seconds kPause{10};
  const MonoTime now = clock_();
  const auto missed = missed_.find(uid);
  if (missed != missed_.end() && now - missed->second < kPause) return std::nullopt;
  auto account = find_account_(uid);
  if (account) {
    missed_.erase(uid);
  } else {
    missed_[uid] = now;
  }
  return account;
}

std::string Identity::name_of(std::uint32_t uid) {
  const auto known = names_.find(uid);
  if (known != names_.end()) return known->second;
  const auto account = account_of(uid);
  return account ? names_.emplace(uid, account->name).first->second
                 : os::nameless_account(uid).name;
}

Principal Identity::of(const os::Peer& peer) {
  Principal principal{.name = name_of(peer.uid),
                      .uid = peer.uid,
                      .role = role_of(peer),
                      .known_by = KnownBy::Peer,
                      .projects = {},
                      .others_jobs = others_jobs_};
  for (const auto& [gid, project] : projects_) {
    if (std::ranges::find(peer.groups, gid) != peer.groups.end()) {
      principal.projects.push_back(project);
    }
  }
  std::ranges::sort(principal.projects);
  return principal;
}

Principal Identity::of_account(std::uint32_t uid) {
  const auto known = accounts_.find(uid);
  if (known != accounts_.end()) return of(known->second);
  const auto account = account_of(uid);
  if (!account) return of({uid, 0, {os::nameless_account(uid).gid}});
  return of(accounts_.emplace(uid, os::Peer{uid, 0, os::groups_of(*account)}).first->second);
}

Principal Identity::of_loopback(std::uint32_t uid) {
  Principal principal = of_account(uid);
  principal.role = Role::User;
  principal.known_by = KnownBy::Loopback;
  return principal;
}

}  // namespace gflow::server
