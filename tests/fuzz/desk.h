// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/buffer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/json.h"
#include "base/text.h"
#include "require.h"
#include "server/conventions.h"
#include "server/fake_service.h"
#include "server/http_message.h"
#include "server/log_reader.h"
#include "server/routes.h"
#include "server/target.h"

namespace gflow::fuzz {

/// A daemon without connections, with a job that runs, one on hold and one that has ended: what
/// comes as bytes of HTTP is read, asked, and answered as bytes of HTTP.
class Desk {
 public:
  Desk() {
    for (const char* more : {R"("request":{"gpus":1})", R"("hold":true)", R"("name":"gone")"}) {
      const std::string body =
          std::string(R"({"items":[{"spec":{"work_dir":"/","command":"true",)") + more +
          R"(},"payload":{"argv":["true"]}}]})";
      ask("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
          "Content-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body);
    }
    require(service_.state().find(JobId(3)) != nullptr);
    service_.end(JobId(3), Outcome{});
    used_ = false;
  }

  /// Asks one that is as it was made, and holds the answer to what every answer is.
  static void ask_a_fresh_one(std::string_view bytes) {
    static std::unique_ptr<Desk> desk;
    if (!desk || desk->used_) desk = std::make_unique<Desk>();
    desk->ask(bytes);
  }

  void ask(std::string_view bytes) {
    server::HttpParser parser;
    parser.header_limit(server::kMaxHeaderBytes);
    parser.eager(true);
    boost::system::error_code error;
    (void)parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    if (error) {
      if (const auto reply = server::reply_to(error)) check(*reply);
      return;
    }
    if (!parser.is_done()) return;
    auto message = parser.release();
    const server::Terms terms = server::terms_of(message);
    const auto target = server::read_target(message.target());
    if (!target) return check(server::problem(target.error()));
    server::WebHeaders web = server::web_headers_of(message, nullptr);
    server::Request request = server::request_of(std::move(message));
    request.path = target->path;
    request.query = target->query;
    request.web = std::move(web);
    request.terms = terms;
    used_ = used_ || (terms.method != "GET" && terms.method != "HEAD");
    if (auto reply = answer(std::move(request))) {
      check(server::finished(terms, server::written(std::move(*reply))));
    }
  }

 private:
  static inline const Principal kAlice{.name = "alice", .uid = 1000, .projects = {}};

  /// Nothing, where it waits for news.
  std::optional<server::Reply> answer(server::Request request) {
    const auto reply = std::make_shared<std::optional<server::Reply>>();
    server::dispatch({.service = service_,
                      .caller = kAlice,
                      .request = std::move(request),
                      .respond = [reply](server::Reply one) { *reply = std::move(one); },
                      .segment = {},
                      .logs = logs_});
    run_later();
    used_ = used_ || !*reply || (*reply)->streamed;  // somebody waits
    return std::move(*reply);
  }
  void run_later() {
    while (!later_.empty()) {
      for (const auto& call : std::exchange(later_, {})) call();
    }
  }
  /// No fault, nothing that a header may not have, and a problem that says what it is.
  static void check(const server::Reply& reply) {
    require(reply.status >= 200 && reply.status < 600 && reply.status != 500);
    for (const auto& [name, value] : reply.headers) {
      require(printable(name) == name && printable(value) == value);
    }
    if (reply.status >= 400 && reply.content_type == "application/problem+json" &&
        reply.body.starts_with('{')) {
      const Error error = api::read_problem(reply.status, reply.body);
      require(!error.message.empty() && printable(error.message) == error.message);
    }
    (void)server::response_of(reply);
  }

  bool used_ = false;  ///< something may have changed
  std::vector<std::function<void()>> later_;
  std::shared_ptr<server::LogReader> logs_ = std::make_shared<server::LogReader>();
  server::FakeService service_{
      [this](std::function<void()> call) { later_.push_back(std::move(call)); }};
};

}  // namespace gflow::fuzz
