// SPDX-License-Identifier: Apache-2.0
#include "core/principal.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

const Principal kUser{.name = "alice", .uid = 1000, .projects = {"urgent"}};
const Principal kOperator{.name = "ops", .uid = 1001, .role = Role::Operator, .projects = {}};
const Principal kAdministrator{
    .name = "root", .uid = 0, .role = Role::Administrator, .projects = {}};
const Principal kToken{
    .name = "ci", .uid = std::nullopt, .known_by = KnownBy::Token, .projects = {}};
const User kAlice{1000, "alice"};
const User kBob{1002, "bob"};

TEST(Principal, MayDoWhatItsRoleAllows) {
  struct Row {
    Principal who;
    bool own, others, drain, administer;
  };
  const Row rows[] = {{kUser, true, false, false, false},
                      {kToken, false, false, false, false},
                      {kOperator, true, true, true, false},
                      {kAdministrator, true, true, true, true}};
  for (const Row& row : rows) {
    EXPECT_EQ(may_change(row.who, JobId(7), kAlice).has_value(), row.own) << row.who.name;
    EXPECT_EQ(may_change(row.who, JobId(7), kBob).has_value(), row.others) << row.who.name;
    EXPECT_EQ(may_see(row.who, kAlice), row.own) << row.who.name;
    EXPECT_EQ(may_see(row.who, kBob), row.others) << row.who.name;
    EXPECT_EQ(may_submit_for(row.who, kBob).has_value(), row.others) << row.who.name;
    EXPECT_EQ(may_drain(row.who, "GPU 3").has_value(), row.drain) << row.who.name;
    EXPECT_EQ(may_administer(row.who).has_value(), row.administer) << row.who.name;
  }
  EXPECT_EQ(may_change(kUser, JobId(7), kBob).error().message, "job 7 belongs to bob");
}

TEST(Principal, WithoutAnAccountOwnsNothing) {
  EXPECT_EQ(job_owner(kUser).value(), kAlice);
  EXPECT_EQ(job_owner(kToken).error().message, "ci has no account on this machine to run jobs as");
  EXPECT_FALSE(owns(kToken, User{0, "root"}));
  EXPECT_EQ(record_of(kToken), (User{65534, "ci"}));
}

TEST(Principal, PriorityIsLimitedByUserThenProjectThenForAll) {
  PriorityLimits limits;
  EXPECT_EQ(max_priority(limits, kUser, ""), kDefaultPriority);
  EXPECT_EQ(max_priority(limits, kOperator, ""), kMaxPriority);
  limits.projects = {{"urgent", 100}, {"other", 200}};
  EXPECT_EQ(max_priority(limits, kUser, "urgent"), 100);
  EXPECT_EQ(max_priority(limits, kUser, "other"), kDefaultPriority) << "no member of it";
  EXPECT_EQ(max_priority(limits, kToken, "urgent"), kDefaultPriority) << "no member of it";
  limits.users = {{"alice", 5}};
  EXPECT_EQ(max_priority(limits, kUser, "urgent"), 5);
  EXPECT_TRUE(may_have_priority(limits, kUser, "", 5));
  EXPECT_EQ(may_have_priority(limits, kUser, "", 6).error().message,
            "priority 6 is above 5, the maximum for alice; an operator can raise it with 'gjob "
            "update', an administrator can raise the maximum with [priority] in gflow.toml");
  EXPECT_EQ(may_have_priority(limits, kUser, "", 6).error().code, Code::Permission);
}

}  // namespace
}  // namespace gflow
