// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/headers.h"
#include "api/json.h"
#include "server/conventions.h"
#include "server/fake_service.h"
#include "server/routes.h"

namespace gflow::server {

inline const Principal kAlice{.name = "alice", .uid = 1000, .projects = {}};
inline const Principal kBob{.name = "bob", .uid = 1001, .projects = {}};
inline const Principal kOperator{
    .name = "ops", .uid = 1002, .role = Role::Operator, .projects = {}};
inline const Principal kRoot{.name = "root", .uid = 0, .role = Role::Administrator, .projects = {}};

/// That api/headers.h tells of what an answer has, and that it has what is told to be there always.
inline void expect_told(const Request& request, Reply reply) {
  const Route* route = find_route(request.method, request.path);
  if (route == nullptr) {
    for (const auto& [name, value] : reply.headers) EXPECT_EQ(name, "Allow") << request.path;
    return;
  }
  const api::RouteView view{
      .method = route->method, .pattern = route->pattern, .about = &route->about};
  const Reply sent = finished({.method = request.method, .request_id = "r"}, std::move(reply));
  std::set<std::string_view> names;
  for (const auto& [name, value] : sent.headers) names.insert(name);
  for (const std::string_view own : {"Cache-Control", "Vary"}) names.erase(own);  // HTTP's
  for (const api::AnswerHeader& header : api::kAnswerHeaders) {
    const bool is_there = names.erase(header.name) > 0;
    const bool may = api::comes_with(header, view, sent.status);
    EXPECT_TRUE(is_there ? may : !api::is_certain(header, view, sent.status))
        << header.name << (is_there ? " came" : " is missing") << " with " << sent.status << " of "
        << request.method << " " << request.path;
  }
  EXPECT_TRUE(names.empty()) << *names.begin() << " is not told of, with " << sent.status << " of "
                             << request.method << " " << request.path;
}

/// A daemon without connections: asks and returns what would be sent.
struct FakeDesk {
  std::vector<std::function<void()>> later;
  FairWork* fair_work = nullptr;
  FakeService service{[this](std::function<void()> f) { later.push_back(std::move(f)); }};

  void run_later() {
    while (!later.empty()) {
      for (const auto& call : std::exchange(later, {})) call();
    }
  }
  std::optional<Reply> ask(const Principal& caller, Request request) {
    auto reply = std::make_shared<std::optional<Reply>>();
    const Request asked = request;
    dispatch({service,
              caller,
              std::move(request),
              [reply](Reply answered) { *reply = written(std::move(answered)); },
              {},
              fair_work});
    run_later();
    if (*reply) expect_told(asked, **reply);
    return *reply;
  }
  Reply ask(const Principal& caller,
            const std::string& method,
            const std::string& path,
            const std::string& body = {},
            const std::string& query = {}) {
    return ask(caller, {method, path, query, {}, {}, body}).value_or(Reply{0, "no answer", "", {}});
  }
  /// What the answer says in its body, or why it is not that.
  template <typename T>
  T read(const Reply& reply, Result<T> (*reader)(std::string_view)) {
    auto document = reader(reply.body);
    EXPECT_TRUE(document) << reply.body;
    return document ? *std::move(document) : T{};
  }
  JobId submit(const Principal& caller, const std::string& spec) {
    const Reply reply = ask(caller,
                            "POST",
                            "/api/v1/jobs",
                            R"({"items":[{"spec":{"work_dir":"/home/x","command":"secret",)" +
                                spec + R"(},"payload":{"argv":["true"]}}]})");
    EXPECT_EQ(reply.status, 201) << reply.body;
    const auto answer = api::read_submit_answer(reply.body);
    return answer ? answer->items.at(0).id : JobId{};
  }
  api::JobView show(const Principal& caller, JobId id) {
    const Reply reply = ask(caller, "GET", "/api/v1/jobs/" + std::to_string(id.value));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return api::read_job(reply.body).value_or(api::JobView{});
  }
};

inline std::string header(const Reply& reply, const std::string& name) {
  for (const auto& [key, value] : reply.headers) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace gflow::server
