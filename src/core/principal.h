// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/job.h"
#include "core/job_sight.h"

/// Who asks, and what that allows. A Principal is made at the edge, where a request comes in, and
/// carried inward; each question of what it may do is one function here.
namespace gflow {

/// Each may do what those before it may.
enum class Role {
  User,           ///< their own jobs
  Operator,       ///< anyone's jobs, any priority, drains
  Administrator,  ///< the daemon itself
};
[[nodiscard]] std::string_view role_name(Role role);  ///< "operator"

/// What somebody may do with a token, whoever made it. Each allows what those before it do.
enum class Scope {
  Read,     ///< look
  Submit,   ///< jobs and allocations of one's own
  Operate,  ///< what an operator may
  Admin,    ///< all its owner may
};
/// "submit".
[[nodiscard]] constexpr std::string_view scope_name(Scope scope) {
  switch (scope) {
    case Scope::Read:
      return "read";
    case Scope::Submit:
      return "submit";
    case Scope::Operate:
      return "operate";
    case Scope::Admin:
      return "admin";
  }
  return "unknown";
}
/// The most a token of this scope makes of its owner.
[[nodiscard]] Role role_within(Scope scope, Role owner);

/// How it is known who asks.
enum class KnownBy {
  Peer,            ///< the kernel told it of the other end of the socket
  Loopback,        ///< the same of a TCP connection on this machine, which anything may forward
  Token,           ///< it showed a token
  Certificate,     ///< it showed a certificate
  ServiceAccount,  ///< a cluster vouches for it
};
[[nodiscard]] std::string_view known_by_name(KnownBy how);  ///< "peer credentials"

struct Principal {
  std::string name;
  /// Its account on this machine; jobs run as it. Empty: it has none.
  std::optional<std::uint32_t> uid;
  Role role = Role::User;
  KnownBy known_by = KnownBy::Peer;
  std::vector<std::string> projects;  ///< it is a member of, sorted; of those with a setting
  Scope scope = Scope::Admin;         ///< of the token it showed
  std::string credential = {};  ///< the token's name, the certificate's subject; "" for others
  OthersJobs others_jobs = OthersJobs::All;  ///< what a user is shown of them; an operator sees all

  friend bool operator==(const Principal&, const Principal&) = default;
};

/// The daemon's own doings and those of simulations.
[[nodiscard]] Principal system_principal();

/// As the owner of jobs. Errors: Permission for one without an account.
[[nodiscard]] Result<User> job_owner(const Principal& principal);
/// For the record: who did something. A uid of 65534 (nobody) stands for one without an account.
[[nodiscard]] User record_of(const Principal& principal);

[[nodiscard]] bool is_operator(const Principal& principal);
[[nodiscard]] bool owns(const Principal& principal, const User& owner);

/// The jobs they are shown, and how much of these.
[[nodiscard]] JobSight sight_of(const Principal& principal);
/// Whether a job of `owner` is there for them; if not, it is answered as one that does not exist.
[[nodiscard]] bool knows_of(const Principal& principal, const User& owner);
/// Cancel, hold, release, suspend, resume, update. Errors: Permission naming the owner.
[[nodiscard]] Result<void> may_change(const Principal& principal, JobId job, const User& owner);
/// What a job runs and where: its command, directory and log.
[[nodiscard]] bool may_see(const Principal& principal, const User& owner);
/// New jobs that belong to `owner`. Errors: Permission.
[[nodiscard]] Result<void> may_submit_for(const Principal& principal, const User& owner);
/// Taking devices and nodes out, and giving them back. Errors: Permission, naming `what`.
[[nodiscard]] Result<void> may_drain(const Principal& principal, std::string_view what);
/// Stopping the daemon, reading its configuration again. Errors: Permission.
[[nodiscard]] Result<void> may_administer(const Principal& principal);

/// What takes this scope. Errors: Permission, for a token of less.
[[nodiscard]] Result<void> is_in_scope(const Principal& principal, Scope needed);
/// Making a token of this scope. Errors: Permission, for who has not the role or is not known by
/// the socket: what was shown once must not become what lasts.
[[nodiscard]] Result<void> may_make_token(const Principal& principal, Scope scope);
/// Seeing and revoking the tokens of `owner`.
[[nodiscard]] bool may_manage_tokens(const Principal& principal, const User& owner);

/// The highest priority somebody may give a job; operators are not bound by it.
struct PriorityLimits {
  int max = kDefaultPriority;
  std::map<std::string, int, std::less<>> users;     ///< by name; goes before all else
  std::map<std::string, int, std::less<>> projects;  ///< for members, of jobs of the project

  friend bool operator==(const PriorityLimits&, const PriorityLimits&) = default;
};
[[nodiscard]] int max_priority(const PriorityLimits& limits,
                               const Principal& principal,
                               std::string_view project);
/// Errors: Permission naming the limit and who can go over it.
[[nodiscard]] Result<void> may_have_priority(const PriorityLimits& limits,
                                             const Principal& principal,
                                             std::string_view project,
                                             int priority);

/// Who has a role, as the configuration names them: "alice", "@group" for a unix group.
struct RoleNames {
  std::vector<std::string> administrators;  ///< besides root and the user the daemon runs as
  std::vector<std::string> operators;

  friend bool operator==(const RoleNames&, const RoleNames&) = default;
};

}  // namespace gflow
