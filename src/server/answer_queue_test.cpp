// SPDX-License-Identifier: Apache-2.0
#include "server/answer_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>

namespace gflow::server {
namespace {

constexpr std::uint32_t kFirst = 1000;
constexpr std::uint32_t kSecond = 1001;

/// What the queue has done, in its order. Nothing is done before go().
class QueueOfTwo {
 public:
  QueueOfTwo() {
    queue_->finish(kFirst, {}, {}, [this](const Reply& /*reply*/) {
      begun_.set_value();
      go_.get_future().wait();
    });
    begun_.get_future().wait();
  }
  AnswerQueue& queue() { return *queue_; }
  void add(char what) { order_ += what; }
  void ask(std::uint32_t uid, char what, Terms terms = {}, std::string body = {}) {
    Reply reply;
    reply.write = [body = std::move(body)] { return body; };
    queue_->finish(uid, std::move(terms), std::move(reply), [this, what](const Reply& /*reply*/) {
      add(what);
    });
  }
  void go() { go_.set_value(); }
  /// All of it, once this user has been answered everything.
  std::string order_after(std::uint32_t uid) {
    std::promise<void> done;
    queue_->finish(uid, {}, {}, [&done](const Reply& /*reply*/) { done.set_value(); });
    go();
    done.get_future().wait();
    return order_;
  }
  void end() { queue_.reset(); }

 private:
  std::promise<void> begun_;
  std::promise<void> go_;
  std::string order_;
  std::optional<AnswerQueue> queue_{std::in_place};
};

TEST(AnswerQueue, LetsUsersTakeTurns) {
  QueueOfTwo queued;
  for (int i = 0; i < 4; ++i) queued.ask(kFirst, 'a');
  queued.ask(kSecond, 'B');
  queued.ask(kSecond, 'B');
  EXPECT_EQ(queued.order_after(kFirst), "BaBaaa");
}

TEST(AnswerQueue, WhatIsLongIsMadeInPiecesWithOthersBetween) {
  constexpr std::size_t kLong = 4'000'000;
  QueueOfTwo queued;
  Terms terms;
  terms.accept_encoding = "gzip";
  queued.ask(kFirst, 'L', terms, std::string(kLong, 'x'));
  queued.ask(kFirst, 'a');
  for (int i = 0; i < 3; ++i) queued.ask(kSecond, 'B');
  EXPECT_EQ(queued.order_after(kFirst), "BBBLa") << "and what was begun before what came later";
}

/// One that has its pieces' names written down, and the thread they are made on.
class NamedBody : public Body {
 public:
  NamedBody(QueueOfTwo& queued, char name) : queued_(queued), name_(name) {}
  void next(Then then) override {
    queued_.add(name_);
    made_on = std::this_thread::get_id();
    then(piece_of({}));
  }
  std::thread::id made_on;

 private:
  QueueOfTwo& queued_;
  char name_;
};

TEST(AnswerQueue, PiecesOfABodyAreMadeInTurnAndElsewhere) {
  QueueOfTwo queued;
  const auto inner = std::make_shared<NamedBody>(queued, 'p');
  const auto body = queued.queue().in_turn(kSecond, inner);
  queued.ask(kFirst, 'a');
  queued.ask(kFirst, 'a');
  body->next([](const Piece& piece) { EXPECT_NE(piece.bytes, nullptr); });
  EXPECT_EQ(queued.order_after(kFirst), "paa");
  EXPECT_NE(inner->made_on, std::thread::id());
  EXPECT_NE(inner->made_on, std::this_thread::get_id());
}

TEST(AnswerQueue, ABodyThatIsAskedWhenTheQueueIsGoneIsCut) {
  QueueOfTwo queued;
  const auto inner = std::make_shared<NamedBody>(queued, 'p');
  const auto body = queued.queue().in_turn(kSecond, inner);
  queued.go();
  queued.end();
  std::optional<Piece> got;
  body->next([&got](Piece piece) { got = std::move(piece); });
  ASSERT_TRUE(got);
  EXPECT_EQ(got->bytes, nullptr);
  EXPECT_FALSE(got->is_whole);
  EXPECT_EQ(inner->made_on, std::thread::id()) << "nothing of it was made";
}

}  // namespace
}  // namespace gflow::server
