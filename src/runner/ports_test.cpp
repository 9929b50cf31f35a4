// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "runner/ports.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "os/fd.h"

namespace gflow::runner {
namespace {

TEST(Ports, BlocksDoNotMeetThoseTaken) {
  std::vector<PortBlock> taken;
  for (int i = 0; i < 20; ++i) {
    const auto block = find_ports(8, taken);
    ASSERT_TRUE(block) << block.error().message;
    EXPECT_EQ(block->count, 8);
    EXPECT_GE(block->base, kFirstPort);
    EXPECT_LE(block->base + 7, kLastPort);
    for (const PortBlock& other : taken) {
      EXPECT_TRUE(block->base >= other.base + other.count || other.base >= block->base + 8);
    }
    taken.push_back(*block);
  }
}

TEST(Ports, OnesInUseArePassedOver) {
  const auto block = find_ports(3, {});
  ASSERT_TRUE(block);
  const os::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(block->base + 1));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const auto next = find_ports(3, {});
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->base > block->base + 1 || next->base + 2 < block->base + 1) << next->base;
}

TEST(Ports, NoneLeftIsSaid) {
  const auto none = find_ports(8, {{kFirstPort, kLastPort - kFirstPort + 1}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::Exhausted);
  EXPECT_FALSE(find_ports(kLastPort - kFirstPort + 2, {}));
  EXPECT_FALSE(find_ports(0, {}));
}

}  // namespace
}  // namespace gflow::runner
