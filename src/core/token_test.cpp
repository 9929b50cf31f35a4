// SPDX-License-Identifier: Apache-2.0
#include "core/token.h"

#include <gtest/gtest.h>

#include <string>

namespace gflow {
namespace {

const std::string kDigits(64, 'a');

TEST(Token, ASecretIsThePrefixAnd64HexDigits) {
  EXPECT_TRUE(is_token_secret("gflow_" + kDigits));
  for (const std::string& text : {std::string(),
                                  std::string("gflow_"),
                                  kDigits,
                                  "gflow_" + kDigits.substr(1),
                                  "gflow_" + kDigits + "a",
                                  "gflow_" + kDigits.substr(1) + "g",
                                  "gflow_" + kDigits.substr(1) + "A",
                                  "Gflow_" + kDigits,
                                  " gflow_" + kDigits}) {
    EXPECT_FALSE(is_token_secret(text)) << text;
  }
}

TEST(Token, TheSchemeIsBearerInAnyCase) {
  EXPECT_EQ(bearer_of("Bearer abc"), "abc");
  EXPECT_EQ(bearer_of("bEARER   abc "), "abc");
  EXPECT_EQ(bearer_of("Bearer "), "");
  for (const char* other : {"", "Bearer", "Basic abc", "Bearerabc", "gflow_abc"}) {
    EXPECT_EQ(bearer_of(other), std::nullopt) << other;
  }
}

TEST(Token, ANameIsOneWord) {
  for (const char* name : {"ci", "my-laptop", "a.b_c", "7"}) EXPECT_TRUE(check_token_name(name));
  const std::string too_long(65, 'a');
  for (const char* name : {"", "a b", "a/b", "..%2f", ".", "..", "\n", "ä", too_long.c_str()}) {
    EXPECT_FALSE(check_token_name(name)) << name;
  }
}

TEST(Token, AScopeReadsAsItIsWritten) {
  for (const Scope scope : {Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin}) {
    const auto read = parse_scope(scope_name(scope));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, scope);
  }
  EXPECT_FALSE(parse_scope("Read"));
  EXPECT_FALSE(parse_scope(""));
}

TEST(Token, ItExpiresAtItsTime) {
  Token token;
  const WallTime now(std::chrono::hours(1));
  EXPECT_FALSE(has_expired(token, now));
  token.expires = now;
  EXPECT_TRUE(has_expired(token, now));
  EXPECT_FALSE(has_expired(token, now - std::chrono::milliseconds(1)));
}

struct OfRole {
  Scope scope;
  Role owner;
  Role is;
};
constexpr OfRole kRoles[] = {
    {Scope::Read, Role::Administrator, Role::User},
    {Scope::Submit, Role::Administrator, Role::User},
    {Scope::Operate, Role::Administrator, Role::Operator},
    {Scope::Operate, Role::User, Role::User},
    {Scope::Admin, Role::Administrator, Role::Administrator},
    {Scope::Admin, Role::Operator, Role::Operator},
    {Scope::Admin, Role::User, Role::User},
};

TEST(Token, ItMakesNobodyMoreThanItsOwnerNorThanItsScope) {
  for (const OfRole& row : kRoles) EXPECT_EQ(role_within(row.scope, row.owner), row.is);
}

TEST(Token, OnlyWhoIsKnownByTheSocketMakesOnesAndOnlyWithinTheRole) {
  Principal alice{.name = "alice", .uid = 1000, .projects = {}};
  EXPECT_TRUE(may_make_token(alice, Scope::Submit));
  EXPECT_FALSE(may_make_token(alice, Scope::Operate));
  EXPECT_FALSE(may_make_token(alice, Scope::Admin));
  alice.role = Role::Operator;
  EXPECT_TRUE(may_make_token(alice, Scope::Operate));
  for (const KnownBy how : {KnownBy::Loopback, KnownBy::Token, KnownBy::Certificate}) {
    alice.known_by = how;
    EXPECT_FALSE(may_make_token(alice, Scope::Read));
  }
}

TEST(Token, AScopeIsAllowedByItselfAndMore) {
  Principal principal{.name = "alice", .uid = 1000, .projects = {}, .scope = Scope::Submit};
  EXPECT_TRUE(is_in_scope(principal, Scope::Read));
  EXPECT_TRUE(is_in_scope(principal, Scope::Submit));
  EXPECT_FALSE(is_in_scope(principal, Scope::Operate));
}

}  // namespace
}  // namespace gflow
