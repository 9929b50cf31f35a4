// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "runner/ports.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "os/fd.h"

namespace gflow::runner {
namespace {

const Ports::Time kStart{std::chrono::hours(1)};

/// A machine on which nobody else has ports. On a real one others have many: each connection that
/// some program made lately keeps the one that Linux gave it, which may be of these.
bool nobody_has_it(int /*port*/) { return true; }

/// No other daemon is there.
os::Fd granted(int /*lane*/) { return os::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

/// As Ports::claim_lane() does it, but among the daemons of this test: of those of the machine
/// there may be so many that no lanes are left.
os::Fd claimed_here(int lane) {
  os::Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("gflow-ports-test-{}-{}", ::getpid(), lane);
  (void)name.copy(&address.sun_path[1], sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) fd.reset();
  return fd;
}

/// Binds the port of this machine alone as another program would; invalid if it cannot be had.
os::Fd listener_at(int port) {
  os::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound =
      ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(listener.get(), 1) == 0;
  return bound ? std::move(listener) : os::Fd();
}

/// The same on IPv6 alone.
os::Fd listener_at_ipv6(int port) {
  os::Fd listener(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  (void)::setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  address.sin6_addr = in6addr_loopback;
  const bool bound =
      ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(listener.get(), 1) == 0;
  return bound ? std::move(listener) : os::Fd();
}

/// A block that was free, and another program that listens at its second port since then.
struct Listened {
  PortBlock block;
  os::Fd listener;
};
std::optional<Listened> listened_in(Ports& ports, int count) {
  while (const auto block = ports.take(count, kStart)) {
    os::Fd listener = listener_at(block->base + 1);
    if (listener.valid()) return Listened{*block, std::move(listener)};
    // A program that is none of this test's has come there meanwhile.
  }
  return std::nullopt;
}

bool meet(PortBlock one, PortBlock other) {
  return one.base < other.base + other.count && other.base < one.base + one.count;
}

TEST(Ports, BlocksDoNotMeetThoseTaken) {
  Ports ports(nobody_has_it, granted);
  ports.note({kFirstPort + 3, 8});
  std::vector<PortBlock> taken = {{kFirstPort + 3, 8}};
  for (int i = 0; i < 20; ++i) {
    const auto block = ports.take(8, kStart);
    ASSERT_TRUE(block) << block.error().message;
    EXPECT_EQ(block->count, 8);
    EXPECT_GE(block->base, kFirstPort);
    EXPECT_LE(block->base + 7, kLastPort);
    for (const PortBlock& other : taken) EXPECT_FALSE(meet(*block, other)) << block->base;
    taken.push_back(*block);
  }
}

TEST(Ports, OnesInUseArePassedOver) {
  Ports ports(Ports::can_bind, granted);
  const auto listened = listened_in(ports, 3);
  ASSERT_TRUE(listened);
  const auto next = Ports(Ports::can_bind, granted).take(3, kStart);
  ASSERT_TRUE(next);
  EXPECT_FALSE(meet(*next, {listened->block.base + 1, 1})) << next->base;
}

TEST(Ports, OnesInUseOnIpv6ArePassedOver) {
  const auto block = Ports(Ports::can_bind, granted).take(3, kStart);
  ASSERT_TRUE(block);
  const os::Fd listener = listener_at_ipv6(block->base + 1);
  if (!listener.valid()) GTEST_SKIP() << "this machine has no IPv6";
  const auto next = Ports(Ports::can_bind, granted).take(3, kStart);
  ASSERT_TRUE(next);
  EXPECT_FALSE(meet(*next, {block->base + 1, 1})) << next->base;
}

TEST(Ports, OneThatTurnsOutToBeInUseIsNotGivenAgainSoon) {
  Ports ports(nobody_has_it, granted);
  const auto first = ports.take(8, kStart);
  ASSERT_TRUE(first);
  ports.give_back(*first);
  const auto second = ports.take(8, kStart);
  ASSERT_TRUE(second);
  EXPECT_FALSE(meet(*first, *second));
}

TEST(Ports, WhatWasFreeIsTriedAgainAfterAWhile) {
  Ports ports(Ports::can_bind, granted);
  const auto listened = listened_in(ports, 8);
  ASSERT_TRUE(listened);
  ports.give_back(listened->block);
  int given = 0;
  while (const auto block = ports.take(8, kStart + Ports::kTrust)) {
    EXPECT_FALSE(meet(*block, {listened->block.base + 1, 1}));
    ++given;
  }
  EXPECT_GT(given, 0);
}

TEST(Ports, WhatIsGivenBackIsGivenAgain) {
  Ports ports(nobody_has_it, granted);
  std::vector<PortBlock> all;
  while (const auto block = ports.take(8, kStart)) all.push_back(*block);
  ASSERT_GT(all.size(), 2U);
  ports.give_back(all[1]);
  const auto block = ports.take(8, kStart);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->base, all[1].base);
  EXPECT_FALSE(ports.take(8, kStart));
}

TEST(Ports, DaemonsOfOneMachineGiveNoneTwice) {
  Ports one(nobody_has_it, claimed_here);
  Ports other(nobody_has_it, claimed_here);
  std::vector<PortBlock> taken;
  for (int i = 0; i < 20; ++i) {
    for (Ports* ports : {&one, &other}) {
      const auto block = ports->take(i % 2 == 0 ? 8 : 50, kStart);
      ASSERT_TRUE(block) << block.error().message;
      for (const PortBlock& before : taken) ASSERT_FALSE(meet(*block, before)) << block->base;
      taken.push_back(*block);
    }
  }
}

TEST(Ports, ALaneThatNoJobHasPortsOfIsLeft) {
  std::set<int> claimed;
  Ports ports(nobody_has_it, [&claimed](int lane) {
    claimed.insert(lane);
    return granted(lane);
  });
  const auto claimed_by = [&claimed, &ports](PortBlock block) {
    ports.give_back(block);
    claimed.clear();
    ports.note(block);
    return claimed.size();
  };
  const auto first = ports.take(50, kStart);  // of two lanes, and the next one is of the second
  const auto second = ports.take(50, kStart);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(claimed_by(*first), 1U) << "the lane that the second has ports of is kept";
  EXPECT_EQ(claimed_by(*second), 0U) << "the lane of the next one is kept, too";
}

TEST(Ports, ASearchInVainKeepsNoLane) {
  std::vector<int> claims;
  Ports ports([](int /*port*/) { return false; },
              [&claims](int lane) {
                os::Fd claim = granted(lane);
                claims.push_back(claim.get());
                return claim;
              });
  EXPECT_FALSE(ports.take(8, kStart));
  ASSERT_FALSE(claims.empty());
  for (const int claim : claims) EXPECT_EQ(::fcntl(claim, F_GETFD), -1) << claim;
}

TEST(Ports, WhatCannotBeTriedEndsTheSearch) {
  int asked = 0;
  const auto cannot = [&asked](int /*which*/) {
    ++asked;
    return std::unexpected(Error{Code::Failure, "make a socket: Too many open files", EMFILE});
  };
  const auto not_claimed = Ports(nobody_has_it, cannot).take(8, kStart);
  const auto not_bound = Ports(cannot, granted).take(8, kStart);
  EXPECT_EQ(asked, 2);
  for (const auto& none : {not_claimed, not_bound}) {
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().number, EMFILE);
  }
}

TEST(Ports, WithoutADescriptorNothingIsTakenForAnothers) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{STDERR_FILENO + 1, before.rlim_max};  // those are open
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto lane = Ports::claim_lane(0);
  const auto port = Ports::can_bind(kFirstPort);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(lane || port);
  EXPECT_EQ(lane.error().number, EMFILE);
  EXPECT_EQ(port.error().number, EMFILE);
}

TEST(Ports, WhereOthersHaveAllLanesTheirsAreTried) {
  const auto refused = [](int /*lane*/) { return os::Fd(); };
  Ports ports([](int port) { return port != kFirstPort + 2; }, refused);
  const auto block = ports.take(3, kStart);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->base, kFirstPort + 3);
}

TEST(Ports, NoneLeftIsSaid) {
  Ports ports(nobody_has_it, granted);
  ports.note({kFirstPort, kLastPort - kFirstPort + 1});
  const auto none = ports.take(8, kStart);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::Exhausted);
  EXPECT_FALSE(Ports(nobody_has_it, granted).take(kLastPort - kFirstPort + 2, kStart));
  EXPECT_FALSE(Ports(nobody_has_it, granted).take(0, kStart));
}

}  // namespace
}  // namespace gflow::runner
