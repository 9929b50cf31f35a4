// SPDX-License-Identifier: Apache-2.0
// The client against servers that say what no gflowd should.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "api/json.h"
#include "client/http_exchange.h"
#include "wire.h"

namespace gflow::wire {
namespace {

bool is_whole(const std::string& request) {
  constexpr std::string_view kLength = "Content-Length: ";
  const std::size_t end = request.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const std::size_t at = request.find(kLength);
  const std::size_t body = at < end ? std::stoul(request.substr(at + kLength.size())) : 0;
  return request.size() == end + 4 + body;
}

/// Answers one connection after the other with the bytes given, then stops listening.
class Script {
 public:
  explicit Script(std::vector<std::string> answers)
      : listener_(os::listen_unix(socket(), 0600).value()),
        thread_([this, texts = std::move(answers)] {
          for (const std::string& text : texts) serve(text);
          listener_.reset();
        }) {}
  ~Script() {
    if (thread_.joinable()) thread_.join();
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  [[nodiscard]] std::string socket() const { return directory_.file("s"); }
  [[nodiscard]] client::Client client() const { return client::Client(socket()); }
  /// What came in, after all answers are given.
  [[nodiscard]] const std::vector<std::string>& requests() {
    thread_.join();
    return requests_;
  }

 private:
  void serve(const std::string& text) {
    pollfd ready{listener_.get(), POLLIN, 0};
    (void)::poll(&ready, 1, -1);  // accept says what is wrong
    const os::Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string request;
    std::array<char, 65536> buffer{};
    while (!is_whole(request)) {
      const ssize_t got = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      request.append(buffer.data(), static_cast<std::size_t>(got));
    }
    requests_.push_back(std::move(request));
    std::string_view left = text;
    while (!left.empty()) {
      const ssize_t put = ::send(connection.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (put <= 0) return;  // a client that hung up is the test's matter
      left.remove_prefix(static_cast<std::size_t>(put));
    }
  }

  TempDir directory_;
  os::Fd listener_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

std::string key_of(const std::string& request) {
  const std::size_t at = request.find("Idempotency-Key: ");
  if (at == std::string::npos) return "";
  return request.substr(at, request.find("\r\n", at) - at);
}

std::string http(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(BrokenServer, SubmissionIsRepeatedOnceWithTheSameKey) {
  Script script({"", http(api::write(api::SubmitAnswer{{{JobId(5), "a", Status::Queued, ""}}}))});
  const auto answer = script.client().submit(one_job());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->items.at(0).id, JobId(5));
  const auto& requests = script.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_NE(key_of(requests[0]), "");
  EXPECT_EQ(requests[0], requests[1]);
}

/// It was killed, and the next one is a moment in coming.
TEST(BrokenServer, SubmissionIsRepeatedUntilAnotherServes) {
  const std::string answers =
      http(api::write(api::SubmitAnswer{{{JobId(5), "a", Status::Queued, ""}}}));
  Script script({"", "", "", answers});
  const auto answer = script.client().submit(one_job());
  ASSERT_TRUE(answer) << answer.error().message;
  const auto& requests = script.requests();
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_EQ(requests.front(), requests.back());
}

TEST(BrokenServer, SubmissionIsNotRepeatedForEver) {
  Script script({"", "HTTP/1.1 201 Crea"});
  api::SubmitRequest request = one_job();
  request.idempotency_key = "mine";
  const auto answer = script.client().submit(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Unreachable);
  EXPECT_EQ(answer.error().message,
            "gflowd does not answer at " + script.socket() +
                ": start it with 'gflowd up'. Whether the jobs were submitted is not known: see "
                "'gqueue --me' before you submit them again");
  EXPECT_EQ(key_of(script.requests().at(1)), "Idempotency-Key: mine");
}

TEST(BrokenServer, NothingElseIsRepeated) {
  Script script({""});
  EXPECT_EQ(script.client().act("cancel", {{JobId(1)}, 0, {}}).error().code, Code::Unreachable);
  EXPECT_EQ(script.requests().size(), 1U);
}

TEST(BrokenServer, BodiesAreReadHoweverTheyAreFramed) {
  const std::string long_body(3'000'000, 'x');
  const std::vector<std::string> answers = {
      http(long_body),
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2dc6bd\r\n" +
          long_body.substr(3) + "\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\n\r\n" + long_body,
      "HTTP/1.1 204 No Content\r\n\r\n",
  };
  const std::vector<std::string> bodies = {long_body, "abc" + long_body.substr(3), long_body, ""};
  Script script(answers);
  client::Client client = script.client();
  for (const std::string& body : bodies) EXPECT_TRUE(client.call("GET", "/healthz") == body);
}

/// Takes a request and answers it a byte at a time, each before the client gives up on silence, for
/// as long as it listens.
class Dripping {
 public:
  explicit Dripping(std::string text)
      : listener_(os::listen_unix(socket(), 0600).value()),
        thread_([this, endless = std::move(text)] { serve(endless); }) {}
  ~Dripping() { thread_.join(); }
  Dripping(const Dripping&) = delete;
  Dripping& operator=(const Dripping&) = delete;

  [[nodiscard]] std::string socket() const { return directory_.file("s"); }

 private:
  void serve(const std::string& text) const {
    constexpr int kDrip = 20;  // milliseconds
    pollfd ready{listener_.get(), POLLIN, 0};
    (void)::poll(&ready, 1, -1);
    const os::Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 65536> request{};
    (void)::recv(connection.get(), request.data(), request.size(), 0);
    pollfd gone{connection.get(), POLLHUP, 0};
    for (std::size_t i = 0; ::poll(&gone, 1, kDrip) == 0; ++i) {
      const char next = i < text.size() ? text[i] : 'x';
      (void)::send(connection.get(), &next, 1, MSG_NOSIGNAL);
    }
  }

  TempDir directory_;
  os::Fd listener_;
  std::thread thread_;
};

TEST(BrokenServer, WhoDripsIsNotWaitedForForEver) {
  constexpr std::chrono::seconds kMost{1};
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"HTTP/1.1 200 OK\r\nX-Long: ", " begins an answer and does not come to its body within 1s"},
      {"HTTP/1.1 200 OK\r\n\r\n", " is too slow: not even 16K within 1s"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n",
       " is too slow: not even 16K within 1s"},
  };
  for (const auto& [text, says] : cases) {
    const Dripping server(text);
    client::Silence silence{.most = kMost, .head = kMost};
    const auto answer = client::exchange(server.socket(), {"GET", "/healthz", {}, {}}, silence);
    ASSERT_FALSE(answer) << text;
    EXPECT_EQ(answer.error(), (Error{Code::Timeout, "gflowd at " + server.socket() + says}));
  }
}

TEST(BrokenServer, WhatIsFollowedMayDrip) {
  constexpr std::chrono::seconds kMost{1};
  const Dripping server("HTTP/1.1 200 OK\r\n\r\n");
  const auto end = std::chrono::steady_clock::now() + 2 * kMost;
  client::HttpRequest request{"GET", "/api/v1/jobs/1/log?follow=true", {}, {}};
  request.take = [end](std::string_view) { return std::chrono::steady_clock::now() < end; };
  client::Silence silence{.most = kMost, .head = kMost, .is_followed = true};
  const auto answer = client::exchange(server.socket(), request, silence);
  EXPECT_TRUE(answer) << answer.error().message;
}

TEST(BrokenServer, NonsenseIsAnError) {
  const std::vector<std::pair<std::string, Code>> cases = {
      {"SSH-2.0-OpenSSH_9.2\r\n", Code::Failure},
      {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Code::Failure},
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", Code::Unreachable},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", Code::Failure},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", Code::Unreachable},
      {http("not json"), Code::Failure},
      {http("{}"), Code::Failure},
      {http(api::write_revision(1)), Code::Failure},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: " +
           std::string(70'000, 'x') + "\r\n\r\n",
       Code::Failure},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(2 << 20, 'x'),
       Code::Failure},
      {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", Code::Failure},
      {"HTTP/1.1 302 Found\r\nLocation: http://x\r\nContent-Length: 0\r\n\r\n", Code::Failure},
  };
  std::vector<std::string> answers;
  for (const auto& [text, code] : cases) answers.push_back(text);
  Script script(answers);
  client::Client client = script.client();
  for (const auto& [text, code] : cases) EXPECT_EQ(client.machine().error().code, code) << text;
}

}  // namespace
}  // namespace gflow::wire
