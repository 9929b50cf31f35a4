// SPDX-License-Identifier: Apache-2.0
#include "server/identity.h"

#include <gtest/gtest.h>

namespace gflow::server {
namespace {

constexpr std::uint32_t kNotLent = 4'000'000;  // uids no account has
constexpr std::uint32_t kOther = 4'000'001;

std::uint32_t gid(const char* name) { return os::group_id(name).value(); }

TEST(Identity, RootAndTheDaemonsUserAreAdministrators) {
  Identity identity(kNotLent);
  EXPECT_EQ(identity.of({0, 1, {0}}).role, Role::Administrator);
  EXPECT_EQ(identity.of({kNotLent, 1, {kNotLent}}).role, Role::Administrator);
  const Principal other = identity.of({kOther, 1, {kOther}});
  EXPECT_EQ(other.role, Role::User);
  EXPECT_EQ(other.uid, kOther);
  EXPECT_EQ(other.name, "uid-4000001");
  EXPECT_EQ(other.known_by, KnownBy::Peer);
}

TEST(Identity, RolesAreThoseOfUserAndGroups) {
  Identity identity(kNotLent);
  EXPECT_TRUE(identity.configure({{"nobody"}, {"daemon", "@tty"}}, {"adm"}).empty());
  const std::uint32_t nobody = os::user_id("nobody").value();
  const std::uint32_t daemon = os::user_id("daemon").value();
  EXPECT_EQ(identity.of({nobody, 1, {kOther}}).role, Role::Administrator);
  EXPECT_EQ(identity.of({daemon, 1, {kOther}}).role, Role::Operator);
  EXPECT_EQ(identity.of({kOther, 1, {kOther, gid("tty")}}).role, Role::Operator);
  EXPECT_EQ(identity.of({kOther, 1, {gid("tty")}}).role, Role::Operator);
  EXPECT_EQ(identity.of({kOther, 1, {kOther, gid("adm")}}).role, Role::User);
  EXPECT_EQ(identity.of({kOther, 1, {kOther, gid("adm")}}).projects,
            std::vector<std::string>{"adm"});
  EXPECT_TRUE(identity.of({kOther, 1, {kOther, gid("tty")}}).projects.empty());
}

TEST(Identity, WhatIsConfiguredAnewCountsAtOnce) {
  Identity identity(kNotLent);
  (void)identity.configure({{}, {"@tty"}}, {});
  EXPECT_EQ(identity.of({kOther, 1, {gid("tty")}}).role, Role::Operator);
  (void)identity.configure({}, {});
  EXPECT_EQ(identity.of({kOther, 1, {gid("tty")}}).role, Role::User);
}

TEST(Identity, OverTcpNobodyIsMoreThanAUser) {
  Identity identity(kNotLent);
  EXPECT_TRUE(identity.configure({{"nobody"}, {}}, {"daemon"}).empty());
  for (const std::uint32_t uid : {0U, kNotLent, os::user_id("nobody").value()}) {
    const Principal who = identity.of_loopback(uid);
    EXPECT_EQ(who.role, Role::User) << uid;
    EXPECT_EQ(who.known_by, KnownBy::Loopback) << uid;
    EXPECT_EQ(who.uid, uid);
  }
  // Groups are those of the account.
  EXPECT_EQ(identity.of_loopback(os::user_id("daemon").value()).projects,
            std::vector<std::string>{"daemon"});
}

TEST(Identity, WhoWasNotFoundIsLookedUpAgain) {
  std::optional<os::Account> account;
  int asked = 0;
  MonoTime now{std::chrono::hours(1)};
  const auto find = [&](std::uint32_t /*uid*/) {
    ++asked;
    return account;
  };
  Identity identity(kNotLent, find, [&now] { return now; });
  (void)identity.configure({}, {"daemon"});
  EXPECT_EQ(identity.of({kOther, 1, {kOther}}).name, "uid-4000001");
  EXPECT_EQ(identity.of_account(kOther).projects, std::vector<std::string>{});
  EXPECT_EQ(asked, 1) << "who knows accounts may take long to say that it does not";
  now += std::chrono::seconds(10);
  account = os::Account{kOther, gid("daemon"), "late", "/home/late"};
  EXPECT_EQ(identity.of({kOther, 1, {kOther}}).name, "late");
  EXPECT_EQ(identity.of_account(kOther).projects, std::vector<std::string>{"daemon"});
  account.reset();
  EXPECT_EQ(identity.of_account(kOther).name, "late") << "it is known now";
  EXPECT_EQ(identity.of_account(kOther).projects, std::vector<std::string>{"daemon"});
}

TEST(Identity, NamesTheMachineDoesNotKnowAreSaidAndCountForNobody) {
  Identity identity(kNotLent);
  EXPECT_EQ(
      identity.configure({{"no-such-user"}, {"@no-such-group"}}, {"no-such-project"}),
      (std::vector<std::string>{"access.administrators: this machine has no user 'no-such-user'",
                                "access.operators: this machine has no group 'no-such-group'",
                                "priority.projects: this machine has no group 'no-such-project'"}));
}

}  // namespace
}  // namespace gflow::server
