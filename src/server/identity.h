// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/principal.h"
#include "os/clock.h"
#include "os/user.h"

namespace gflow::server {

/// Makes principals of those who connect: the edge where it is decided who somebody is and which
/// roles they have. Names of the configuration are looked up once, when they are given.
class Identity {
 public:
  /// As os::find_account().
  using Accounts = std::function<std::optional<os::Account>(std::uint32_t uid)>;

  /// `own_uid` is the user the daemon runs as: an administrator, as root is.
  explicit Identity(
      std::uint32_t own_uid,
      Accounts accounts = os::find_account,
      std::function<MonoTime()> clock = [] { return os::now().mono; })
      : own_uid_(own_uid), find_account_(std::move(accounts)), clock_(std::move(clock)) {}

  /// Takes the names of roles, and of projects somebody may be a member of: by the unix group of
  /// the same name. Returns a sentence for each name this machine does not know; those count for
  /// nobody.
  std::vector<std::string> configure(const RoleNames& roles,
                                     const std::vector<std::string>& projects);
  /// What they are shown of others' jobs from now on.
  void show_of_others(OthersJobs what) { others_jobs_ = what; }
  [[nodiscard]] Principal of(const os::Peer& peer);
  /// Of an account that showed a token or a certificate. Groups are those of the account, looked up
  /// once until the configuration is read again.
  [[nodiscard]] Principal of_account(std::uint32_t uid);
  /// Of the owner of a TCP connection's other end. A user and no more, whoever it is: what connects
  /// may pass on what others ask.
  [[nodiscard]] Principal of_loopback(std::uint32_t uid);

 private:
  struct Members {
    std::set<std::uint32_t> users;
    std::set<std::uint32_t> groups;
    [[nodiscard]] bool contain(const os::Peer& peer) const;
  };
  static Members look_up(const std::string& setting,
                         const std::vector<std::string>& names,
                         std::vector<std::string>& unknown);
  [[nodiscard]] std::optional<os::Account> account_of(std::uint32_t uid);
  [[nodiscard]] std::string name_of(std::uint32_t uid);
  [[nodiscard]] Role role_of(const os::Peer& peer) const;

  std::uint32_t own_uid_;
  Accounts find_account_;
  std::function<MonoTime()> clock_;
  Members administrators_;
  Members operators_;
  OthersJobs others_jobs_ = OthersJobs::All;
  std::map<std::uint32_t, std::string> projects_;  // by group
  std::map<std::uint32_t, std::string> names_;     // of users that were found, looked up once
  std::map<std::uint32_t, MonoTime> missed_;       // and when others were not found
  std::map<std::uint32_t, os::Peer> accounts_;     // of those who came over TCP and were found
};

}  // namespace gflow::server
