// SPDX-License-Identifier: Apache-2.0
#include "os/tcp.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gflow::os {
namespace {

/// A connection of this process to itself.
struct Connection {
  Fd client;
  Fd accepted;
  std::uint16_t port = 0;  ///< the client's
};

Fd accept_from(int listener) {
  pollfd watched{listener, POLLIN, 0};
  EXPECT_EQ(::poll(&watched, 1, -1), 1);
  return Fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
}

/// From 127.0.0.1 to whoever listens.
Connection connect_by_v4(int listener, std::uint16_t port) {
  Connection made{Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  auto* const raw = reinterpret_cast<sockaddr*>(&name);  // NOLINT: as the calls take it
  EXPECT_EQ(::connect(made.client.get(), raw, size), 0);
  made.accepted = accept_from(listener);
  EXPECT_EQ(::getsockname(made.client.get(), raw, &size), 0);
  made.port = ntohs(name.sin_port);
  return made;
}

class ListensAt : public ::testing::TestWithParam<const char*> {};

TEST_P(ListensAt, WhoComesByIpv4IsKnownByThatAndByAccount) {
  ListenAddress address{GetParam(), 0};
  const auto listener = listen_tcp(address);
  if (!listener && listener.error().code == Code::NotFound) GTEST_SKIP() << "there is no IPv6";
  ASSERT_TRUE(listener) << listener.error().message;
  ASSERT_NE(address.port, 0);
  const Connection made = connect_by_v4(listener->get(), address.port);
  EXPECT_EQ(address_of_other_end(made.accepted.get()), "127.0.0.1:" + std::to_string(made.port));
  const auto owner = owner_of_other_end(made.accepted.get());
  ASSERT_TRUE(owner) << owner.error().message;
  EXPECT_EQ(*owner, ::getuid());
}

INSTANTIATE_TEST_SUITE_P(Tcp, ListensAt, ::testing::Values("127.0.0.1", "0.0.0.0", "::"));

TEST(Tcp, WhoIsGoneIsNobodys) {
  ListenAddress address{"127.0.0.1", 0};
  const auto listener = listen_tcp(address);
  ASSERT_TRUE(listener) << listener.error().message;
  Connection made = connect_by_v4(listener->get(), address.port);
  const linger reset{1, 0};
  ASSERT_EQ(::setsockopt(made.client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
  made.client = Fd();
  pollfd watched{made.accepted.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&watched, 1, -1), 1);
  const auto owner = owner_of_other_end(made.accepted.get());
  ASSERT_FALSE(owner);
  EXPECT_EQ(owner.error().code, Code::NotFound);
  EXPECT_EQ(address_of_other_end(made.accepted.get()), "");
}

}  // namespace
}  // namespace gflow::os
