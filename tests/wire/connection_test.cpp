// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <semaphore>

#include "api/json.h"
#include "wire.h"

namespace gflow::wire {
namespace {

constexpr std::string_view kHealth = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

std::string post(const std::string& path, const std::string& body) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
      path,
      body.size(),
      body);
}

/// From now on no answer is given; `held` is released for each.
void hold_answers(Daemon& daemon, std::binary_semaphore& held) {
  daemon.on_loop([&] {
    daemon.service().hold_answers = true;
    daemon.service().on_hold = [&held] { held.release(); };
  });
}

TEST(Connection, IsKeptForTheNextRequest) {
  Daemon daemon;
  const Raw raw(daemon.socket());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(raw.send(kHealth));
    EXPECT_TRUE(raw.read_until("ok\n").starts_with("HTTP/1.1 200 OK\r\n"));
  }
  ASSERT_TRUE(raw.send("GET /healthz HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(raw.read_all().ends_with("\r\n\r\nok\n"));
}

/// Of one that cannot be read nothing is taken from the one before it on the same connection.
TEST(Connection, TellsEachRequestItsOwnId) {
  Daemon daemon;
  const Raw raw(daemon.socket());
  ASSERT_TRUE(raw.send("HEAD /healthz HTTP/1.1\r\nX-Request-Id: first\r\n\r\n"));
  EXPECT_NE(raw.read_until("\r\n\r\n").find("X-Request-Id: first\r\n"), std::string::npos);
  ASSERT_TRUE(raw.send("no request\r\n\r\n"));
  const std::string unread = raw.read_all();
  EXPECT_TRUE(unread.starts_with("HTTP/1.1 400 ")) << unread;
  EXPECT_NE(unread.find("X-Request-Id: "), std::string::npos) << unread;
  EXPECT_EQ(unread.find("first"), std::string::npos) << unread;
  EXPECT_TRUE(unread.ends_with("}")) << "a refusal has its body, whatever was asked before";

  const Raw coded(daemon.socket());
  ASSERT_TRUE(
      coded.send("POST /api/v1/jobs HTTP/1.1\r\nX-Request-Id: second\r\n"
                 "Transfer-Encoding: gzip, chunked\r\n\r\n"));
  EXPECT_NE(coded.read_all().find("X-Request-Id: second\r\n"), std::string::npos);
}

TEST(Connection, AnswersRequestsSentAtOnceInOrder) {
  Daemon daemon;
  const Raw raw(daemon.socket());
  ASSERT_TRUE(
      raw.send("GET /api/v1/jobs/7 HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n"
               "Connection: close\r\n\r\n"));
  const std::string answers = raw.read_all();
  const std::size_t first = answers.find("HTTP/1.1 404 Not Found");
  const std::size_t second = answers.find("HTTP/1.1 200 OK");
  EXPECT_EQ(first, 0U);
  ASSERT_NE(second, std::string::npos);
  EXPECT_TRUE(answers.ends_with("ok\n"));
}

TEST(Connection, TakesBodiesInChunksAndByInvitation) {
  Daemon daemon;
  const Raw chunked(daemon.socket());
  ASSERT_TRUE(
      chunked.send("POST /api/v1/jobs/hold HTTP/1.1\r\nConnection: close\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"job\r\n7\r\ns\":[7]}\r\n0\r\n\r\n"));
  EXPECT_NE(chunked.read_all().find("job 7"), std::string::npos);

  const Raw invited(daemon.socket());
  const std::string body = R"({"jobs":[8]})";
  ASSERT_TRUE(
      invited.send(fmt::format("POST /api/v1/jobs/hold HTTP/1.1\r\nConnection: close\r\n"
                               "Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
                               body.size())));
  EXPECT_EQ(invited.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(invited.send(body));
  EXPECT_NE(invited.read_all().find("job 8"), std::string::npos);
}

TEST(Connection, LargeBodiesAreReadAwayFromTheLoop) {
  Daemon daemon;
  std::string ids = "7";
  for (int i = 0; i < 20'000; ++i) ids += ",7";
  for (const auto& [body, said] : std::vector<std::pair<std::string, std::string>>{
           {R"({"jobs":[)" + ids + "]}", "job 7"}, {ids, "HTTP/1.1 400"}}) {
    const Raw raw(daemon.socket());
    ASSERT_TRUE(raw.send(post("/api/v1/jobs/hold", body)));
    EXPECT_NE(raw.read_all().find(said), std::string::npos);
  }
}

TEST(Connection, AClientThatGoesIsNotWaitedFor) {
  Daemon daemon;
  std::binary_semaphore waits{0};
  std::binary_semaphore gone{0};
  std::uint64_t revision = 0;
  daemon.on_loop([&] {
    revision = daemon.service().state().revision();
    daemon.service().on_wait = [&waits] { waits.release(); };
    daemon.service().on_let_go = [&gone] { gone.release(); };
  });
  Raw raw(daemon.socket());
  ASSERT_TRUE(raw.send(fmt::format("GET /api/v1/changes?revision={} HTTP/1.1\r\n\r\n", revision)));
  waits.acquire();
  raw.close();
  gone.acquire();
}

TEST(Connection, AnswersNobodyReadsHaveALimit) {
  Daemon daemon;
  api::SubmitRequest request = one_job();
  request.items.front().spec.hold = true;
  request.items.front().spec.command = std::string(16'000, 'x');
  request.items.resize(100, request.items.front());
  ASSERT_TRUE(daemon.client().submit(request));
  std::deque<Raw> unread;
  std::size_t answered = 0;
  std::string first = "HTTP/1.1 200";
  for (; first == "HTTP/1.1 200"; ++answered) {
    ASSERT_LT(answered, 100U) << "nothing was refused";
    unread.emplace_back(daemon.socket());
    ASSERT_TRUE(unread.back().send("GET /api/v1/jobs HTTP/1.1\r\n\r\n"));
    first = unread.back().read_first(12);
  }
  EXPECT_EQ(first, "HTTP/1.1 429");
  EXPECT_GT(answered, 40U);
  unread.clear();
  EXPECT_EQ(daemon.client().call("GET", "/healthz"), "ok\n");
}

struct Bad {
  std::string bytes;
  std::string answer;  ///< how it begins; "" if there is none
};

TEST(Connection, SurvivesBytesThatAreNoRequest) {
  Daemon daemon;
  const std::string huge(70'000, 'x');
  const std::vector<Bad> cases = {
      {"", ""},
      {"GET", ""},
      {"\r\n\r\n", ""},
      {"\r\n\r\n\r\n\r\n\r\n", "HTTP/1.1 400 "},
      {std::string("\0\1\2\3", 4), "HTTP/1.1 400 "},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "HTTP/1.1 400 "},
      {"GET / HTTP/9.9\r\n\r\n", "HTTP/1.1 400 "},
      {"GET  HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /a b HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400 "},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 400 "},
      {"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "HTTP/1.1 400 "},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 "},
      {"POST /api/v1/daemon/reload HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501 "},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 501 "},
      {"POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\nshort", ""},
      {"GET /" + huge + " HTTP/1.1\r\n\r\n", "HTTP/1.1 431 "},
      {"GET / HTTP/1.1\r\nA: " + huge + "\r\n\r\n", "HTTP/1.1 431 "},
      {"POST / HTTP/1.1\r\nContent-Length: 16777217\r\n\r\n", "HTTP/1.1 413 "},
      {"POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n", "HTTP/1.1 4"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1000001\r\n", "HTTP/1.1 413 "},
  };
  for (const auto& [bytes, answer] : cases) {
    const Raw raw(daemon.socket());
    (void)raw.send(bytes);  // an early answer may cut it short
    raw.finish_sending();
    const std::string got = raw.read_all();
    EXPECT_EQ(got.substr(0, answer.empty() ? 20 : answer.size()), answer)
        << bytes.substr(0, 80) << "\n"
        << got;
    EXPECT_EQ(daemon.client().call("GET", "/healthz"), "ok\n");
  }
}

TEST(Connection, AnswersAClientThatOnlyStoppedSending) {
  Daemon daemon;
  const Raw raw(daemon.socket());
  std::binary_semaphore held(0);
  hold_answers(daemon, held);
  ASSERT_TRUE(raw.send(post("/api/v1/jobs", api::write(one_job()))));
  raw.finish_sending();
  held.acquire();
  daemon.on_loop([&] { daemon.service().release_answers(); });
  EXPECT_TRUE(raw.read_all().starts_with("HTTP/1.1 201 Created"));
}

TEST(Connection, ThatSaysNothingIsCutOff) {
  server::HttpServer::Options options;
  options.idle = std::chrono::milliseconds(20);
  Daemon daemon(options);
  const Raw raw(daemon.socket());
  EXPECT_EQ(raw.read_all(), "");
}

TEST(Connection, ThatSaysHalfIsToldThatItIsLate) {
  server::HttpServer::Options options;
  options.idle = std::chrono::milliseconds(20);
  Daemon daemon(options);
  for (const std::string_view start :
       {"GET /healthz HT", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"}) {
    const Raw raw(daemon.socket());
    ASSERT_TRUE(raw.send(start));
    const std::string answer = raw.read_all();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ")) << start << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  }
}

TEST(Connection, ThatWaitsForAnAnswerIsNotCutOff) {
  server::HttpServer::Options options;
  options.idle = std::chrono::milliseconds(20);
  Daemon daemon(options);
  std::binary_semaphore held(0);
  hold_answers(daemon, held);
  const Raw waits(daemon.socket());
  ASSERT_TRUE(waits.send(post("/api/v1/jobs", api::write(one_job()))));
  held.acquire();
  // Two others that are cut off one after the other: more than the time has passed then.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Raw(daemon.socket()).read_all(), "");
  daemon.on_loop([&] { daemon.service().release_answers(); });
  EXPECT_TRUE(waits.read_all().starts_with("HTTP/1.1 201 Created"));
}

TEST(Connection, TwoHundredAreServedAtOnce) {
  Daemon daemon;
  std::vector<Raw> open;
  for (int i = 0; i < 200; ++i) {
    open.emplace_back(daemon.socket());
    ASSERT_TRUE(open.back().send("GET /healthz HTTP/1.1\r\nConnection: cl"));
  }
  for (const Raw& raw : open) ASSERT_TRUE(raw.send("ose\r\n\r\n"));
  for (const Raw& raw : open) EXPECT_TRUE(raw.read_all().ends_with("ok\n"));
}

TEST(Connection, OneUserGetsNoMoreThanItsShare) {
  Daemon daemon;
  std::vector<Raw> open;
  for (int i = 0; i < 256; ++i) {
    open.emplace_back(daemon.socket());
    // Answered, so that it is known to be counted.
    ASSERT_TRUE(open.back().send(kHealth));
    ASSERT_TRUE(open.back().read_until("ok\n").ends_with("ok\n"));
  }
  const auto refused = daemon.client().call("GET", "/healthz");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Exhausted);
  EXPECT_TRUE(refused.error().message.ends_with("256 connections open; close some first"));
  ASSERT_TRUE(open.back().send("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(open.back().read_all().ends_with("ok\n"));
  EXPECT_EQ(daemon.client().call("GET", "/healthz"), "ok\n");
}

TEST(Connection, BodiesOfOneUserAreLimitedTogether) {
  Daemon daemon;
  std::vector<Raw> open;
  for (int i = 0; i < 4; ++i) {
    open.emplace_back(daemon.socket());
    ASSERT_TRUE(open.back().send(
        "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 16777216\r\n\r\n"));
    ASSERT_FALSE(open.back().read_until("\r\n\r\n").empty());
  }
  EXPECT_EQ(daemon.client().act("hold", {{JobId(1)}, 0, {}}).error().code, Code::Exhausted);
  open.back().close();
  // Its end is seen before what comes after it.
  const Raw next(daemon.socket());
  ASSERT_TRUE(next.send(kHealth));
  ASSERT_TRUE(next.read_until("ok\n").ends_with("ok\n"));
  EXPECT_EQ(daemon.client().act("hold", {{JobId(1)}, 0, {}}).error().code, Code::NotFound);
}

TEST(Connection, OfAClientThatIsGoneIsGivenBack) {
  Daemon daemon;
  std::counting_semaphore<> waiting(0);
  daemon.on_loop([&] { daemon.service().on_wait = [&] { waiting.release(); }; });
  const std::uint64_t revision = daemon.client().machine()->revision;
  // More than one user may have: each has to be noticed while its answer is awaited.
  for (int i = 0; i < 400; ++i) {
    Raw raw(daemon.socket());
    ASSERT_TRUE(
        raw.send(fmt::format("GET /api/v1/changes?revision={} HTTP/1.1\r\n\r\n", revision)));
    waiting.acquire();
    raw.close();
  }
  ASSERT_TRUE(daemon.client().submit(one_job()));
}

TEST(Connection, MayEndBeforeItsAnswerComes) {
  Daemon daemon;
  std::binary_semaphore held(0);
  hold_answers(daemon, held);
  Raw raw(daemon.socket());
  ASSERT_TRUE(raw.send(post("/api/v1/jobs", api::write(one_job()))));
  held.acquire();
  raw.close();
  EXPECT_EQ(daemon.client().call("GET", "/healthz"), "ok\n");
  daemon.on_loop([&] { daemon.service().release_answers(); });
  EXPECT_EQ(daemon.client().newest(0), JobId(1));
}

TEST(Connection, ClosingWaitsForAnswersUnderWay) {
  Daemon daemon;
  std::binary_semaphore held(0);
  hold_answers(daemon, held);
  const Raw idle(daemon.socket());
  ASSERT_TRUE(idle.send(kHealth));
  ASSERT_TRUE(idle.read_until("ok\n").ends_with("ok\n"));
  const Raw busy(daemon.socket());
  ASSERT_TRUE(busy.send(fmt::format("POST /api/v1/jobs HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}",
                                    api::write(one_job()).size(),
                                    api::write(one_job()))));
  held.acquire();
  daemon.on_loop([&] { daemon.server().close(); });
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_EQ(daemon.client().machine().error().code, Code::Unreachable);
  daemon.on_loop([&] { daemon.service().release_answers(); });
  const std::string answer = busy.read_all();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 201 Created")) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
}

TEST(Connection, OfAWebPageIsRefused) {
  Daemon daemon;
  const Raw raw(daemon.socket());
  ASSERT_TRUE(
      raw.send("GET /api/v1/jobs HTTP/1.1\r\nOrigin: http://x\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(raw.read_all().starts_with("HTTP/1.1 403 Forbidden"));
}

TEST(Socket, IsReplacedOnlyIfItIsOne) {
  TempDir directory;
  boost::asio::io_context io;
  server::FakeService service([](std::function<void()>) {});
  server::HttpServer::Options options;
  options.socket_path = directory.file("s");
  ASSERT_TRUE(os::listen_unix(options.socket_path, 0600)) << "a stale one";
  ASSERT_TRUE(server::HttpServer::listen(io, options, service));
  EXPECT_FALSE(os::exists(options.socket_path)) << "removed when the server ends";
  ASSERT_TRUE(os::write_file(options.socket_path, "precious"));
  EXPECT_EQ(server::HttpServer::listen(io, options, service).error().code, Code::WrongState);
  options.socket_path = directory.file(std::string(200, 'x'));
  EXPECT_EQ(server::HttpServer::listen(io, options, service).error().code, Code::Usage);
}

}  // namespace
}  // namespace gflow::wire
