// SPDX-License-Identifier: Apache-2.0
// Every parameter that is told of a route is read by it, and refused with the same words.
#include "server/queries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "server/fake_desk.h"

namespace gflow::server {
namespace {

using api::QueryParameter;

/// What is no value of a parameter; "" where any text is one.
std::string wrong_value(const QueryParameter& parameter) {
  if (parameter.type != QueryParameter::Type::Text || !parameter.words.empty()) return "%7Ewrong";
  return "";
}

std::string path_of(std::string_view pattern) {
  const api::Pattern parts = api::pattern_of(pattern);
  if (parts.name.empty()) return std::string(pattern);
  return std::string(parts.before) + "1" + std::string(parts.after);
}

std::string refusal(const Route& route, const std::string& query) {
  FakeDesk desk;
  const Reply reply =
      desk.ask(kRoot, std::string(route.method), path_of(route.pattern), "{}", query);
  EXPECT_EQ(reply.status, 400) << route.pattern << '?' << query << ' ' << reply.body;
  return api::read_problem(reply.status, reply.body).message;
}

TEST(Queries, AreRefusedByTheirTables) {
  for (const Route& route : routes()) {
    EXPECT_EQ(refusal(route, "zzzzzzzzzzzz=1").find("there is no query parameter 'zzzzzzzzzzzz'"),
              0U)
        << route.pattern;
    for (const QueryParameter& told : route.handler.query()) {
      const std::string name(told.name);
      if (told.many == QueryParameter::Many::One) {
        EXPECT_EQ(refusal(route, name + "=1&" + name + "=1"),
                  "query parameter '" + name + "' is given twice");
      }
      EXPECT_TRUE(refusal(route, name + '=').starts_with(name)) << route.pattern;
      if (const std::string wrong = wrong_value(told); !wrong.empty()) {
        const std::string said = refusal(route, name + '=' + wrong);
        EXPECT_TRUE(said.starts_with(name + " must be ") || said.starts_with(name + ": '~wrong'") ||
                    said.starts_with(name + ": there is no"))
            << route.pattern << ' ' << said;
      }
    }
  }
}

TEST(Queries, NumbersAreWithinTheirRange) {
  for (const Route& route : routes()) {
    for (const QueryParameter& told : route.handler.query()) {
      if (told.type != QueryParameter::Type::Number || told.range.most == INT64_MAX) continue;
      const std::string over = std::to_string(told.range.most + 1);
      EXPECT_EQ(refusal(route, std::string(told.name) + '=' + over),
                std::string(told.name) + " must be " + std::to_string(told.range.least) + " to " +
                    std::to_string(told.range.most) + ", not " + over);
    }
  }
}

TEST(Queries, AmountsAreWithinTheirRange) {
  const Route* nodes = find_route("GET", "/api/v1/gpu/nodes");
  ASSERT_NE(nodes, nullptr);
  for (const std::string over : {"1048577", "8796093022208", "1e300", "inf", "nan", "-1", "-inf"}) {
    EXPECT_EQ(
        refusal(*nodes, "min_memory_gb=" + over),
        "min_memory_gb must be a number from 0 to 1048576, as 16 or 16.5, not '" + over + "'");
  }
  for (const Route& route : routes()) {
    for (const QueryParameter& told : route.handler.query()) {
      const bool is_amount = told.type == QueryParameter::Type::Decimal;
      EXPECT_FALSE(is_amount && told.range.most == INT64_MAX) << route.pattern << ' ' << told.name;
    }
  }
}

TEST(Queries, NamesAndExamplesAreOfTheirTables) {
  for (const Route& route : routes()) {
    std::set<std::string_view> names;
    for (const QueryParameter& told : route.handler.query()) {
      EXPECT_TRUE(names.insert(told.name).second) << route.pattern << ' ' << told.name;
      EXPECT_FALSE(told.help.empty()) << route.pattern << ' ' << told.name;
    }
  }
}

}  // namespace
}  // namespace gflow::server
