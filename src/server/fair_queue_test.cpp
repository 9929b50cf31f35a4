// SPDX-License-Identifier: Apache-2.0
#include "server/fair_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "server/worker.h"

namespace gflow::server {
namespace {

/// Work that writes down who it was.
struct Written {
  FairQueue queue;
  std::string order;

  void push(std::uint32_t uid, const std::string& what) {
    queue.push(uid, [this, what] { order += what; });
  }
  std::string run() {
    while (queue.ready()) queue.pop()();
    return order;
  }
};

TEST(FairQueue, GivesEachUserOneTurnAfterTheOther) {
  Written work;
  for (const char* what : {"a", "b", "c", "d"}) work.push(1000, what);
  work.push(1001, "X");
  work.push(1002, "1");
  work.push(1002, "2");
  EXPECT_EQ(work.run(), "aX1b2cd");
}

TEST(FairQueue, OneWhoComesWaitsForNoMoreThanOnePieceOfEachOther) {
  Written work;
  for (int i = 0; i < 1000; ++i) work.push(1000, "a");
  work.queue.pop()();
  work.push(1001, "X");
  work.queue.pop()();
  EXPECT_EQ(work.order, "aX");
}

TEST(FairQueue, TheRestOfWhatWasBegunComesBeforeWhatTheSameUserAskedLater) {
  Written work;
  work.push(1000, "a");
  work.push(1000, "z");
  work.queue.pop()();
  work.queue.push_front(1000, [&work] { work.order += "b"; });
  EXPECT_EQ(work.run(), "abz");
}

TEST(FairQueue, SkipsThoseWhoAreBlocked) {
  Written work;
  work.push(1000, "a");
  work.push(1001, "X");
  work.queue.block(1000);
  EXPECT_EQ(work.run(), "X");
  EXPECT_FALSE(work.queue.ready());
  work.queue.unblock(1000);
  EXPECT_EQ(work.run(), "Xa");
}

TEST(Worker, LetsUsersTakeTurns) {
  std::string order;
  std::promise<void> begun;
  std::promise<void> go;
  std::promise<void> done;
  Worker worker;
  worker.run(1000, [&] {
    begun.set_value();
    go.get_future().wait();
    order += "a";
  });
  begun.get_future().wait();
  for (int i = 0; i < 3; ++i) worker.run(1000, [&] { order += "b"; });
  worker.run(1001, [&] { order += "X"; });
  worker.run(1000, [&] { done.set_value(); });
  go.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, "aXbbb");
}

}  // namespace
}  // namespace gflow::server
