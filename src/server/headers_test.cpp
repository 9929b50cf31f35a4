// SPDX-License-Identifier: Apache-2.0
#include "api/headers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "server/fake_desk.h"
#include "server/openapi.h"

namespace gflow::server {
namespace {

/// "If-Match": "IfMatch".
std::string component_named(std::string_view header) {
  std::string name(header);
  std::erase(name, '-');
  return name;
}

bool is_of_no_component(const api::RequestHeader& header) { return header.component.empty(); }
bool is_of_no_component(const api::AnswerHeader& header) {
  return header.leads_to_route || header.name == "Allow";
}

template <typename Headers>
void expect_each_once_in_order(const Headers& headers) {
  using Header = Headers::value_type;
  EXPECT_EQ(std::ranges::adjacent_find(headers, std::ranges::greater_equal(), &Header::name),
            headers.end());
  for (const Header& header : headers) {
    if (is_of_no_component(header)) continue;
    EXPECT_EQ(header.component, component_named(header.name));
    EXPECT_FALSE(header.help.empty()) << header.name;
  }
}

TEST(HeadersTest, EachIsThereOnceUnderItsName) {
  expect_each_once_in_order(api::kRequestHeaders);
  expect_each_once_in_order(api::kAnswerHeaders);
}

std::set<std::string_view> headers_with(const api::RouteView& route, int status) {
  std::set<std::string_view> names;
  for (const api::AnswerHeader& header : api::kAnswerHeaders) {
    if (api::comes_with(header, route, status)) names.insert(header.name);
  }
  return names;
}

/// A problem is described once for all routes that answer it.
TEST(HeadersTest, AProblemHasTheSameOnesOfWhateverRouteItIs) {
  constexpr int kFirst = 400;
  constexpr int kBehind = 600;
  for (int status = kFirst; status < kBehind; ++status) {
    std::set<std::set<std::string_view>> kinds;
    std::set<std::set<std::string_view>> of_all;
    for (const api::RouteView& route : route_views()) {
      const auto names = headers_with(route, status);
      of_all.insert(names);
      if (std::ranges::count(route.about->errors, status) != 0) kinds.insert(names);
    }
    EXPECT_EQ((kinds.empty() ? of_all : kinds).size(), 1) << status;
  }
}

TEST(HeadersTest, EachComesWithAnAnswerOfARoute) {
  for (const api::AnswerHeader& header : api::kAnswerHeaders) {
    if (header.name == "Allow") continue;  // of no route: routes_test.cpp
    const bool is_of_one = std::ranges::any_of(route_views(), [&](const api::RouteView& route) {
      constexpr std::array kStatuses = {200, 201, 202, 206, 401, 429};
      return std::ranges::any_of(
          kStatuses, [&](int status) { return api::comes_with(header, route, status); });
    });
    EXPECT_TRUE(is_of_one) << header.name;
  }
}

TEST(HeadersTest, AChangedJobHasItsTagAndAPageItsLink) {
  FakeDesk desk;
  desk.submit(kAlice, R"("hold":true)");
  desk.submit(kAlice, R"("hold":true)");
  const Reply changed = desk.ask(kAlice, "PATCH", "/api/v1/jobs/1", R"({"priority":5})");
  EXPECT_EQ(changed.status, 200) << changed.body;
  EXPECT_FALSE(header(changed, "ETag").empty());
  EXPECT_FALSE(header(desk.ask(kAlice, "GET", "/api/v1/jobs", {}, "limit=1"), "Link").empty());
  EXPECT_FALSE(header(desk.ask(kAlice, "GET", "/docs"), "Content-Security-Policy").empty());
}

}  // namespace
}  // namespace gflow::server
