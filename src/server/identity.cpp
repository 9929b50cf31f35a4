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

Principal Identity::of(const os::Peer& peer) {
  auto name = names_.find(peer.uid);
  if (name == names_.end()) {
    name = names_.emplace(peer.uid, os::account_of(peer.uid).name).first;
  }
  Principal principal{.name = name->second,
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
  auto account = accounts_.find(uid);
  if (account == accounts_.end()) {
    const os::Peer peer{uid, 0, os::groups_of(os::account_of(uid))};
    account = accounts_.emplace(uid, peer).first;
  }
  return of(account->second);
}

Principal Identity::of_loopback(std::uint32_t uid) {
  Principal principal = of_account(uid);
  principal.role = Role::User;
  principal.known_by = KnownBy::Loopback;
  return principal;
}

}  // namespace gflow::server
