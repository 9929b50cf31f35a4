// SPDX-License-Identifier: Apache-2.0
#include "server/shared_answers.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/conventions.h"
#include "server/desk.h"
#include "server/fake_desk.h"
#include "server/made_once.h"
#include "server/token_table.h"

namespace gflow::server {
namespace {

/// What was answered to whom, in that order.
struct Answered {
  std::vector<std::string> list;

  SharedAnswers::Respond to(const std::string& who) {
    return [this, who](const Reply& reply) { list.push_back(who + ": " + written(reply).body); };
  }
};

SharedAnswers::Question question(const std::string& path = "/api/v1/jobs") {
  return {kAlice, {.method = "GET", .path = path}};
}

TEST(SharedAnswers, AreForThoseWhoAskedBeforeTheyWereBegun) {
  SharedAnswers shared;
  Answered answered;
  const std::uint64_t first = shared.arrived();
  const std::uint64_t second = shared.arrived();
  EXPECT_FALSE(shared.join(question(), first, answered.to("first")));
  const auto respond = shared.begin(question(), answered.to("first"));
  const std::uint64_t late = shared.arrived();
  EXPECT_TRUE(shared.join(question(), second, answered.to("second")));
  EXPECT_FALSE(shared.join(question(), late, answered.to("late")))
      << "what it did before it asked may not be in it";
  EXPECT_TRUE(answered.list.empty());
  respond({200, "page"});
  EXPECT_EQ(answered.list, (std::vector<std::string>{"first: page", "second: page"}));
  EXPECT_TRUE(shared.join(question(), second, answered.to("again")));
  EXPECT_EQ(answered.list.back(), "again: page") << "also once it is made";
  EXPECT_FALSE(shared.join(question(), late, answered.to("late")));
  shared.let_go();
  EXPECT_FALSE(shared.join(question(), second, answered.to("second")));
}

TEST(SharedAnswers, AreForNoOtherQuestion) {
  SharedAnswers shared;
  const std::uint64_t number = shared.arrived();
  (void)shared.begin(question(), [](const Reply&) {});
  SharedAnswers::Question other = question();
  EXPECT_TRUE(shared.join(other, number, {}));
  const auto differs = [&](auto change) {
    other = question();
    change(other);
    EXPECT_FALSE(shared.join(other, number, {}));
  };
  differs([](auto& asked) { asked.caller = kBob; });
  differs([](auto& asked) { asked.caller.role = Role::Operator; });
  differs([](auto& asked) { asked.caller.scope = Scope::Read; });
  differs([](auto& asked) { asked.caller.projects = {"vision"}; });
  differs([](auto& asked) { asked.request.path = "/api/v1/jobs/1"; });
  differs([](auto& asked) { asked.request.query = "limit=1"; });
  differs([](auto& asked) { asked.request.method = "HEAD"; });
  differs([](auto& asked) { asked.request.language = "zh"; });
  differs([](auto& asked) { asked.request.accept = "text/html"; });
  differs([](auto& asked) { asked.request.web = WebHeaders{.host = "evil.example"}; });
  differs([](auto& asked) { asked.request.origin = "https://evil.example"; });
}

TEST(SharedAnswers, AreFewAndTheNewest) {
  SharedAnswers shared;
  const std::uint64_t number = shared.arrived();
  for (int i = 0; i < 9; ++i) (void)shared.begin(question(std::to_string(i)), [](const Reply&) {});
  EXPECT_FALSE(shared.join(question("0"), number, {}));
  EXPECT_TRUE(shared.join(question("1"), number, {}));
  EXPECT_TRUE(shared.join(question("8"), number, {}));
}

/// A long text is written, digested and kept once, and finished for each as it asked.
TEST(SharedAnswers, AreMadeOnceAndFinishedForEach) {
  SharedAnswers shared;
  const std::uint64_t number = shared.arrived();
  std::vector<Reply> replies;
  const auto keep = [&replies](const Reply& reply) { replies.push_back(reply); };
  int times = 0;
  Reply made =
      json_reply_later([&times] { return std::string(10'000, 'x') + char('0' + ++times); });
  made.headers.emplace_back("Link", "<next>");
  shared.begin(question(), keep)(std::move(made));
  ASSERT_TRUE(shared.join(question(), number, keep));
  const Reply plain = finished({.method = "GET"}, replies.at(0));
  const Reply zipped = finished({.method = "GET", .accept_encoding = "gzip"}, replies.at(1));
  EXPECT_EQ(times, 1);
  EXPECT_EQ(plain.body.size(), 10'001U);
  EXPECT_EQ(header(plain, "Link"), "<next>");
  EXPECT_EQ(header(plain, "ETag"), header(zipped, "ETag"));
  EXPECT_EQ(header(zipped, "Content-Encoding"), "gzip");
  EXPECT_LT(zipped.body.size(), plain.body.size());
  EXPECT_EQ(
      finished({.method = "GET", .if_none_match = header(plain, "ETag")}, replies.at(0)).status,
      304);
  EXPECT_EQ(written(replies.at(0)).kept, written(replies.at(1)).kept);
}

/// Who comes once it is made has it copied where it asks: to hand that over would take longer.
TEST(SharedAnswers, AreSoonFinishedOnceTheyAreMade) {
  SharedAnswers shared;
  std::vector<Reply> replies;
  const auto begin = [&](std::size_t size) {
    const auto keep = [&replies](const Reply& reply) { replies.push_back(reply); };
    shared.begin(question(), keep)(json_reply(std::string(size, 'x')));
    return replies.back();
  };
  const Terms plain{.method = "GET"};
  const Terms zipped{.method = "GET", .accept_encoding = "gzip"};
  const Reply page = begin(20'000);
  EXPECT_FALSE(is_soon_finished(plain, page)) << "its tag is not known yet";
  (void)written(page);
  EXPECT_TRUE(is_soon_finished(plain, page));
  EXPECT_FALSE(is_soon_finished(zipped, page)) << "it is compressed for each";
  const Reply large = begin(1'000'000);
  (void)written(large);
  EXPECT_FALSE(is_soon_finished(plain, large));
  EXPECT_TRUE(is_soon_finished(zipped, begin(4096)));
  EXPECT_FALSE(is_soon_finished(plain, json_reply_later([] { return std::string(); })));
}

/// What is short is written where it is sent, for each of several, too.
TEST(SharedAnswers, AreWrittenAtOnceWhereTheyAreShort) {
  SharedAnswers shared;
  std::vector<Reply> replies;
  Reply one = json_reply_later([] { return std::string(400, 'x'); });
  one.is_short = true;
  shared.begin(question(), [&](const Reply& reply) { replies.push_back(reply); })(std::move(one));
  ASSERT_TRUE(replies.at(0).is_short);
  EXPECT_TRUE(is_soon_finished({.method = "GET"}, written(replies.at(0))));
}

/// A desk on a loop of its own, asked by alice over the socket.
struct AskedDesk {
  boost::asio::io_context loop;
  FakeService service{[this](std::function<void()> f) { boost::asio::post(loop, std::move(f)); }};
  std::shared_ptr<Desk> desk = std::make_shared<Desk>(
      loop, service, Authenticator({.any_user = true}, service.tokens(), [](const std::string&) {
      }));
  std::vector<std::shared_ptr<void>> tickets;
  std::vector<Reply> replies;

  ~AskedDesk() { desk->close(); }

  void ask(const std::string& path, std::uint32_t uid = 1000) {
    tickets.push_back(
        desk->ask({.peer = {uid, 1, {uid}}},
                  {.method = "GET", .path = path},
                  {[this](const Reply& reply) { replies.push_back(written(reply)); }, [] {}}));
  }
  /// Follows the events with a token. Returns what tells that they were cut.
  std::shared_ptr<bool> follow(const std::string& secret) {
    const std::size_t before = replies.size();
    tickets.push_back(
        desk->ask({.peer = {1000, 1, {1000}}, .via = Via::Tcp},
                  {.method = "GET", .path = "/api/v1/events", .authorization = "Bearer " + secret},
                  {[this](const Reply& reply) { replies.push_back(reply); }, [] {}}));
    while (replies.size() == before) loop.run_one();
    auto is_cut = std::make_shared<bool>(false);
    listen(replies.back(), is_cut);
    return is_cut;
  }
  static void listen(const Reply& reply, const std::shared_ptr<bool>& is_cut) {
    ASSERT_TRUE(reply.streamed) << reply.status << reply.body;
    read_on(reply.streamed->body, is_cut);
  }
  static void read_on(const std::shared_ptr<Body>& body, const std::shared_ptr<bool>& is_cut) {
    body->next([body = std::weak_ptr(body), is_cut](const Piece& piece) {
      const auto more = body.lock();
      if (piece.bytes && more) return read_on(more, is_cut);
      *is_cut = !piece.is_whole;
    });
  }
  /// The table of tokens has this one alone, of root, and nobody is told.
  std::string only_token(WallTime expires) {
    const std::string secret = make_token_secret();
    (void)service.keep_tokens({{.name = "one",
                                .owner = {0, "root"},
                                .digest = token_digest(secret),
                                .expires = expires}});
    return secret;
  }
  void run() {
    loop.restart();
    loop.run();
  }
};

TEST(Desk, AnswersWhoAskTheSameAtOnceWithOneDocument) {
  AskedDesk asked;
  for (int i = 0; i < 3; ++i) asked.ask("/api/v1/machine");
  asked.ask("/api/v1/machine", 1001);
  asked.run();
  ASSERT_EQ(asked.replies.size(), 4U);
  std::vector<const Made*> mine;
  for (const Reply& reply : asked.replies) {
    EXPECT_EQ(reply.status, 200);
    ASSERT_TRUE(reply.kept);
    if (reply.uid == 1000U) mine.push_back(reply.kept.get());
  }
  EXPECT_EQ(mine, std::vector<const Made*>(3, mine.front()));
  const auto before = asked.replies.front().kept;
  asked.ask("/api/v1/machine");
  asked.run();
  EXPECT_NE(asked.replies.back().kept, before) << "it asked later";
}

TEST(Desk, LooksAgainHoweverOftenStreamsBegin) {
  using namespace std::chrono_literals;
  AskedDesk asked;
  const WallTime now = asked.service.now().wall;
  const auto first = asked.follow(asked.only_token(now + 200ms));
  const auto second = asked.follow(asked.only_token(now + 1h));  // the first is known no more
  bool is_late = false;
  boost::asio::steady_timer later(asked.loop, 10s);  // of the same clock, behind the look
  later.async_wait([&is_late](const boost::system::error_code&) { is_late = true; });
  while (!*first && !is_late) asked.loop.run_one();
  EXPECT_TRUE(*first) << "who came second put off the look at the first";
  EXPECT_FALSE(*second);
}

TEST(Desk, AnswersNobodyWithWhatWasBeforeTheyAsked) {
  AskedDesk asked;
  for (int i = 0; i < 3; ++i) asked.ask("/api/v1/jobs/1");
  while (asked.replies.empty()) asked.loop.run_one();
  JobSpec spec;
  spec.user = {1000, "alice"};
  asked.service.request(engine::event::Submit{{spec}, system_principal()}, [](const auto&) {});
  asked.ask("/api/v1/jobs/1");
  asked.run();
  std::vector<int> statuses;
  for (const Reply& reply : asked.replies) statuses.push_back(reply.status);
  EXPECT_EQ(statuses, (std::vector<int>{404, 404, 404, 200}));
}

}  // namespace
}  // namespace gflow::server
