// SPDX-License-Identifier: Apache-2.0
#include "core/principal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"

namespace gflow {
namespace {

constexpr std::uint32_t kNobody = 65534;

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::User:
      return "user";
    case Role::Operator:
      return "operator";
    case Role::Administrator:
      return "administrator";
  }
  return "user";
}

Role role_within(Scope scope, Role owner) {
  if (scope == Scope::Admin) return owner;
  return std::min(owner, scope == Scope::Operate ? Role::Operator : Role::User);
}

std::string_view known_by_name(KnownBy how) {
  switch (how) {
    case KnownBy::Peer:
      return "peer credentials";
    case KnownBy::Loopback:
      return "loopback connection";
    case KnownBy::Token:
      return "token";
    case KnownBy::Certificate:
      return "certificate";
    case KnownBy::ServiceAccount:
      return "service account";
  }
  return "peer credentials";
}

Principal system_principal() {
  return {.name = "gflow",
          .uid = std::nullopt,
          .role = Role::Administrator,
          .known_by = KnownBy::Peer,
          .projects = {}};
}

Result<User> job_owner(const Principal& principal) {
  if (principal.uid) return User{*principal.uid, principal.name};
  return fail(
      Code::Permission,
      tr_format("{} has no account on this machine to run jobs as", printable(principal.name)));
}

User record_of(const Principal& principal) {
  return {principal.uid.value_or(kNobody), principal.name};
}

bool is_operator(const Principal& principal) { return principal.role >= Role::Operator; }

bool owns(const Principal& principal, const User& owner) { return principal.uid == owner.uid; }

JobSight sight_of(const Principal& principal) {
  const OthersJobs others = is_operator(principal) ? OthersJobs::All : principal.others_jobs;
  return {others, principal.uid};
}

bool knows_of(const Principal& principal, const User& owner) {
  return sight_of(principal).knows(owner);
}

Result<void> may_change(const Principal& principal, JobId job, const User& owner) {
  if (is_operator(principal) || owns(principal, owner)) return {};
  return fail(Code::Permission,
              tr_format("job {} belongs to {}", job.value, printable(owner.name)));
}

bool may_see(const Principal& principal, const User& owner) {
  return is_operator(principal) || owns(principal, owner);
}

Result<void> may_submit_for(const Principal& principal, const User& owner) {
  if (is_operator(principal) || owns(principal, owner)) return {};
  return fail(Code::Permission,
              tr_format("{} cannot submit jobs that belong to {}",
                        printable(principal.name),
                        printable(owner.name)));
}

Result<void> may_drain(const Principal& principal, std::string_view what) {
  if (is_operator(principal)) return {};
  return fail(Code::Permission, tr_format("only an operator can drain {}", what));
}

Result<void> may_administer(const Principal& principal) {
  if (principal.role >= Role::Administrator) return {};
  return fail(Code::Permission,
              tr("only an administrator may do this: root, the user gflowd runs as, and the users "
                 "that [access] in gflow.toml names"));
}

Result<void> is_in_scope(const Principal& principal, Scope needed) {
  if (principal.scope >= needed) return {};
  return fail(Code::Permission,
              tr_format("the scope of token '{}' is {}, and this takes {}: make another one with "
                        "'gctl token create NAME --scope {}'",
                        printable(principal.credential),
                        scope_name(principal.scope),
                        scope_name(needed),
                        scope_name(needed)));
}

Result<void> may_make_token(const Principal& principal, Scope scope) {
  if (principal.known_by != KnownBy::Peer || !principal.uid) {
    return fail(Code::Permission,
                tr("tokens are made on the machine itself, over gflowd's socket: log in there and "
                   "run 'gctl token create', or send POST /api/v1/tokens to the socket ('curl "
                   "--unix-socket')"));
  }
  const Role role = scope == Scope::Admin     ? Role::Administrator
                    : scope == Scope::Operate ? Role::Operator
                                              : Role::User;
  if (principal.role >= role) return {};
  return fail(Code::Permission,
              tr_format("a token may do no more than its owner: scope '{}' is for the role {}, and "
                        "yours is {}",
                        scope_name(scope),
                        role_name(role),
                        role_name(principal.role)));
}

bool may_manage_tokens(const Principal& principal, const User& owner) {
  return principal.role >= Role::Administrator || owns(principal, owner);
}

int max_priority(const PriorityLimits& limits,
                 const Principal& principal,
                 std::string_view project) {
  if (is_operator(principal)) return kMaxPriority;
  if (const auto own = limits.users.find(principal.name); own != limits.users.end()) {
    return own->second;
  }
  const auto shared = limits.projects.find(project);
  if (shared != limits.projects.end() &&
      std::ranges::find(principal.projects, project) != principal.projects.end()) {
    return shared->second;
  }
  return limits.max;
}

Result<void> may_have_priority(const PriorityLimits& limits,
                               const Principal& principal,
                               std::string_view project,
                               int priority) {
  const int max = max_priority(limits, principal, project);
  if (priority <= max) return {};
  return fail(
      Code::Permission,
      tr_format("priority {} is above {}, the maximum for {}; an operator can raise it with 'gjob "
                "update', an administrator can raise the maximum with [priority] in gflow.toml",
                priority,
                max,
                printable(principal.name)));
}

}  // namespace gflow
