// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <set>

#include "server/routes.h"

#include <gtest/gtest.h>

#include "api/json.h"
#include "server/fake_desk.h"

namespace gflow::server {
namespace {

/// Every route there is, and who may use it: written out, so that neither a route that goes nor one
/// that opens to everybody goes unnoticed.
struct Right {
  const char* method;
  const char* path;
  Role least;  ///< and those with more
};
constexpr Right kRights[] = {
    {"GET", "/healthz", Role::User},
    {"GET", "/readyz", Role::User},
    {"GET", "/version", Role::User},
    {"GET", "/metrics", Role::User},
    {"GET", "/docs", Role::User},
    {"GET", "/docs/style.css", Role::User},
    {"GET", "/docs/script.js", Role::User},
    {"GET", "/api/v1/jobs", Role::User},
    {"POST", "/api/v1/jobs", Role::User},
    {"PATCH", "/api/v1/jobs", Role::User},
    {"POST", "/api/v1/jobs/cancel", Role::User},
    {"POST", "/api/v1/jobs/signal", Role::User},
    {"POST", "/api/v1/jobs/hold", Role::User},
    {"POST", "/api/v1/jobs/release", Role::User},
    {"POST", "/api/v1/jobs/suspend", Role::User},
    {"POST", "/api/v1/jobs/resume", Role::User},
    {"POST", "/api/v1/jobs/check", Role::User},
    {"GET", "/api/v1/jobs/newest", Role::User},
    {"GET", "/api/v1/jobs/7", Role::User},
    {"PATCH", "/api/v1/jobs/7", Role::User},
    {"DELETE", "/api/v1/jobs/7", Role::User},
    {"POST", "/api/v1/jobs/7/suspend", Role::User},
    {"POST", "/api/v1/jobs/7/resume", Role::User},
    {"POST", "/api/v1/jobs/7/move", Role::User},
    {"GET", "/api/v1/jobs/7/explain", Role::User},
    {"GET", "/api/v1/jobs/7/log", Role::User},
    {"GET", "/api/v1/queue", Role::User},
    {"GET", "/api/v1/defrag", Role::User},
    {"POST", "/api/v1/defrag", Role::User},
    {"GET", "/api/v1/groups", Role::User},
    {"GET", "/api/v1/groups/sweep", Role::User},
    {"GET", "/api/v1/statistics", Role::User},
    {"GET", "/api/v1/nodes", Role::User},
    {"GET", "/api/v1/nodes/lab1", Role::User},
    {"GET", "/api/v1/devices", Role::User},
    {"GET", "/api/v1/devices/GPU-1", Role::User},
    {"GET", "/api/v1/topology", Role::User},
    {"GET", "/api/v1/machine", Role::User},
    {"POST", "/api/v1/place", Role::User},
    {"GET", "/api/v1/snapshot", Role::User},
    {"GET", "/api/v1/drain", Role::User},
    {"POST", "/api/v1/drain", Role::Operator},
    {"GET", "/api/v1/daemon", Role::User},
    {"POST", "/api/v1/daemon/stop", Role::Administrator},
    {"POST", "/api/v1/daemon/reload", Role::Administrator},
    {"GET", "/api/v1/events", Role::User},
    {"GET", "/api/v1/principal", Role::User},
    {"GET", "/api/v1/settings", Role::User},
    {"GET", "/api/v1/openapi.json", Role::User},
    {"GET", "/api/v1/tokens", Role::User},
    {"POST", "/api/v1/tokens", Role::User},
    {"DELETE", "/api/v1/tokens/ci", Role::User},
    {"GET", "/api/v1/changes", Role::User},
    {"GET", "/api/v1/gpu/status", Role::User},
    {"GET", "/api/v1/gpu/nodes", Role::User},
    {"GET", "/api/v1/gpu/health", Role::User},
    {"GET", "/api/v1/gpu/monitoring", Role::User},
    {"POST", "/api/v1/gpu/validate", Role::User},
    {"POST", "/api/v1/gpu/allocate", Role::User},
    {"POST", "/api/v1/gpu/setup-pytorch", Role::User},
    {"POST", "/api/v1/gpu/setup-tensorflow", Role::User},
    {"DELETE", "/api/v1/gpu/cleanup/lab1", Role::User},
    {"GET", "/api/v1/gpu/allocations", Role::User},
    {"GET", "/api/v1/gpu/allocations/7", Role::User},
    {"DELETE", "/api/v1/gpu/allocations/7", Role::User},
    {"POST", "/api/v1/gpu/allocations/7/renew", Role::User},
};

TEST(Routes, AreThoseAndForThose) {
  std::set<const Route*> named;
  for (const Right& right : kRights) {
    const Route* route = find_route(right.method, right.path);
    EXPECT_NE(route, nullptr) << right.method << ' ' << right.path;
    EXPECT_TRUE(named.insert(route).second) << "twice: " << right.method << ' ' << right.path;
  }
  for (const Route& route : routes()) {
    EXPECT_TRUE(named.contains(&route))
        << "a new route needs its line here: " << route.method << ' ' << route.pattern;
  }
  for (const Right& right : kRights) {
    FakeDesk desk;
    const Reply reply = desk.ask(kAlice, right.method, right.path, "{}", "");
    EXPECT_NE(reply.status, 405) << right.path;
    EXPECT_EQ(reply.body.find("there is no '"), std::string::npos) << reply.body;
    EXPECT_EQ(reply.status == 403, right.least > Role::User)
        << right.method << ' ' << right.path << ' ' << reply.body;
    EXPECT_FALSE(desk.service.stopped);
    const Reply operated = desk.ask(kOperator, right.method, right.path, "{}", "");
    EXPECT_EQ(operated.status == 403, right.least > Role::Operator)
        << right.method << ' ' << right.path << ' ' << operated.body;
    EXPECT_FALSE(desk.service.stopped);
    const Reply allowed = desk.ask(kRoot, right.method, right.path, "{}", "");
    EXPECT_NE(allowed.status, 403) << right.path;
  }
}

/// What a route that only reads is asked with, where that is more than its path.
struct Question {
  std::string query;
  std::string body;
};
Question question_for(std::string_view path) {
  if (path == "/api/v1/changes") return {"revision=0", ""};
  if (path == "/api/v1/events") return {"follow=false", ""};
  if (path == "/api/v1/place") return {"", R"({"request":{"gpus":1}})"};
  if (path == "/api/v1/gpu/validate") return {"", R"({"gpu_count":1})"};
  if (path == "/api/v1/jobs/check") {
    return {"", R"({"items":[{"spec":{"work_dir":"/"},"payload":{"argv":["true"]}}]})"};
  }
  return {};
}

TEST(Routes, ThatReadChangeNothing) {
  for (const Right& right : kRights) {
    const Route* route = find_route(right.method, right.path);
    ASSERT_NE(route, nullptr) << right.path;
    EXPECT_TRUE(only_reads(route->verb) || std::string_view(right.method) != "GET");
    if (!only_reads(route->verb)) continue;
    FakeDesk desk;
    for (int i = 0; i < 7; ++i) (void)desk.submit(kRoot, R"("hold":true,"group":"sweep")");
    const std::uint64_t before = desk.service.state().revision();
    const Question question = question_for(right.path);
    const Reply reply = desk.ask(kRoot, right.method, right.path, question.body, question.query);
    EXPECT_EQ(desk.service.state().revision(), before) << right.path;
    // There is no log, no allocation and no device of that name.
    EXPECT_TRUE(reply.status == 200 || reply.status == 404) << right.path << ' ' << reply.body;
  }
}

TEST(Routes, SayWhatStandsInTheirBraces) {
  for (const Route& route : routes()) {
    const bool has_segment = !api::pattern_of(route.pattern).name.empty();
    EXPECT_EQ(route.about.segment.empty(), !has_segment) << route.pattern << ": .segment";
  }
}

TEST(Routes, HaveOneSegmentInBracesOrNone) {
  static_assert(api::is_pattern("/a") && api::is_pattern("/a/{id}") && api::is_pattern("/{id}/b"));
  static_assert(!api::is_pattern("/{id}/{name}") && !api::is_pattern("/{") &&
                !api::is_pattern("/}"));
  static_assert(!api::is_pattern("/{}") && !api::is_pattern("/{{id}}"));
  EXPECT_EQ(find_route("GET", "/api/v1/jobs/7/lo"), nullptr);
  EXPECT_EQ(find_route("GET", "/api/v1/jobs//log"), nullptr);
  EXPECT_EQ(find_route("GET", "/api/v1/jobs/log"), nullptr);
  EXPECT_NE(find_route("GET", "/api/v1/jobs/7/log"), nullptr);
}

TEST(Routes, WebPagesAreRefusedEverywhere) {
  for (const Route& route : routes()) {
    FakeDesk desk;
    const auto reply = desk.ask(
        kRoot, {std::string(route.method), std::string(route.pattern), "", "http://evil", "", ""});
    ASSERT_TRUE(reply) << route.pattern;
    EXPECT_EQ(reply->status, 403) << route.pattern;
  }
}

TEST(Routes, WhatIsNotThereIsNamedWithTheNearest) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/api/v1/job", "there is no '/api/v1/job'; did you mean '/api/v1/jobs'?"},
      {"/api/v1/jobs/", "there is no '/api/v1/jobs/'; did you mean '/api/v1/jobs'?"},
      {"/api/v1/jobs/newst",
       "there is no '/api/v1/jobs/newst'; did you mean '/api/v1/jobs/newest'?"},
      {"/completely/else/where/and/far", "there is no '/completely/else/where/and/far'"},
      {"/\x1b[2J", "there is no '/\\x1b[2J'"},
      {"", "there is no ''"},
      {"/api/v1/jobs/7", "there is no job 7"},
      {"/api/v1/jobs/18446744073709551616", "there is no job 18446744073709551616"},
  };
  for (const auto& [path, message] : cases) {
    FakeDesk desk;
    const Reply reply = desk.ask(kAlice, "GET", path);
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(reply.content_type, "application/problem+json");
    const Error told = api::read_problem(reply.status, reply.body);
    EXPECT_EQ(told, (Error{Code::NotFound, message})) << reply.body;
  }
}

TEST(Routes, AMethodAPathDoesNotTakeIsNamedWithThoseItDoes) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"DELETE", "/api/v1/jobs", "GET, HEAD, POST, PATCH, OPTIONS"},
      {"GET", "/api/v1/jobs/cancel", "POST, OPTIONS"},
      {"HEAD", "/api/v1/jobs/cancel", "POST, OPTIONS"},
      {"POST", "/api/v1/jobs/7", "GET, HEAD, PATCH, DELETE, OPTIONS"},
      {"options", "/api/v1/daemon/stop", "POST, OPTIONS"},
      {"get", "/healthz", "GET, HEAD, OPTIONS"},
  };
  for (const auto& [method, path, allow] : cases) {
    FakeDesk desk;
    const Reply reply = desk.ask(kRoot, method, path);
    EXPECT_EQ(reply.status, 405) << path;
    EXPECT_EQ(header(reply, "Allow"), allow);
  }
}

TEST(Changes, AreWaitedFor) {
  FakeDesk desk;
  const JobId watched = desk.submit(kAlice, R"("hold":true)");
  const std::string now = std::to_string(desk.service.state().revision());
  std::vector<std::string> answers;
  const auto wait = [&](const std::string& query) {
    dispatch({desk.service,
              kAlice,
              {"GET", "/api/v1/changes", query, {}, {}, {}},
              [&answers](const Reply& reply) { answers.push_back(reply.body); },
              {}});
    desk.run_later();
  };
  wait("revision=" + now);
  wait("revision=" + now + "&job=" + std::to_string(watched.value));
  EXPECT_EQ(answers.size(), 0U);
  (void)desk.submit(kBob, R"("hold":true)");
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers.back(), api::write_revision(desk.service.state().revision()));
  (void)desk.ask(kAlice, "POST", "/api/v1/jobs/release", R"({"jobs":[1]})");
  EXPECT_EQ(answers.size(), 2U);
  wait("revision=" + now);
  EXPECT_EQ(answers.size(), 3U) << "what has changed already is not waited for";
  wait("revision=" + now + "&job=99");
  EXPECT_NE(answers.back().find("there is no job 99"), std::string::npos);
  wait("revison=1");
  EXPECT_NE(answers.back().find("did you mean 'revision'"), std::string::npos);
}

TEST(Daemon, StopsAndReloadsForAdministrators) {
  FakeDesk desk;
  EXPECT_EQ(desk.ask(kRoot, "POST", "/api/v1/daemon/reload").status, 204);
  desk.service.reloaded = fail(Code::Usage, "gflow.toml:3: what is this");
  const Reply reply = desk.ask(kRoot, "POST", "/api/v1/daemon/reload");
  EXPECT_EQ(api::read_problem(reply.status, reply.body),
            (Error{Code::Usage, "gflow.toml:3: what is this"}));
  EXPECT_EQ(desk.ask(kRoot, "POST", "/api/v1/daemon/stop").status, 204);
  EXPECT_TRUE(desk.service.stopped);
  EXPECT_EQ(desk.ask(kBob, "GET", "/healthz").body, "ok\n");
}

TEST(Daemon, TellsWhetherItTakesJobsAndWhichVersionItIs) {
  FakeDesk desk;
  EXPECT_EQ(desk.ask(kBob, "GET", "/readyz").body, "ok\n");
  EXPECT_EQ(desk.ask(kBob, "GET", "/version").body,
            R"({"apiVersion":"gflow/v1","kind":"Version","version":"0.1.0"})");
  desk.service.is_ready = fail(Code::Unreachable, "it waits for something");
  const Reply reply = desk.ask(kBob, "GET", "/readyz");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(api::read_problem(reply.status, reply.body),
            (Error{Code::Unreachable, "it waits for something"}));
  EXPECT_EQ(desk.ask(kBob, "GET", "/healthz").status, 200) << "a restart would not help";
}

}  // namespace
}  // namespace gflow::server
