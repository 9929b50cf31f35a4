// SPDX-License-Identifier: Apache-2.0
#include "os/descriptor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace gflow::os {
namespace {

struct Pair {
  Fd here;
  Fd there;

  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    here.reset(ends[0]);
    there.reset(ends[1]);
  }
};

TEST(Descriptor, GivesAnOpenFile) {
  Pair channel;
  Pair given;
  ASSERT_TRUE(send_descriptor(channel.here.get(), given.there.get()));
  given.there.reset();
  const auto taken = receive_descriptor(channel.there.get());
  ASSERT_TRUE(taken && taken->valid());
  ASSERT_EQ(::write(taken->get(), "x", 1), 1);
  char read = 0;
  EXPECT_EQ(::read(given.here.get(), &read, 1), 1);
  EXPECT_EQ(read, 'x');
}

TEST(Descriptor, IsNoneWhereNothingOrSomethingElseCame) {
  Pair channel;
  EXPECT_FALSE(receive_descriptor(channel.there.get()).value().valid());
  ASSERT_EQ(::write(channel.here.get(), "x", 1), 1);
  EXPECT_FALSE(receive_descriptor(channel.there.get()).value().valid());
}

TEST(Descriptor, ToldThatTheOtherEndHungUp) {
  Pair channel;
  channel.here.reset();
  EXPECT_EQ(receive_descriptor(channel.there.get()).error().code, Code::Unreachable);
  EXPECT_EQ(send_descriptor(channel.there.get(), 0).error().code, Code::Unreachable);
}

}  // namespace
}  // namespace gflow::os
