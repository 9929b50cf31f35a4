// SPDX-License-Identifier: Apache-2.0
#include "server/listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "os/tcp.h"

namespace gflow::server {
namespace {

os::Fd connected(std::uint16_t port) {
  os::Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  return client;
}

/// While it lives no descriptor can be had but those that are given back.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    (void)::getrlimit(RLIMIT_NOFILE, &before_);
    const os::Fd lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit none{static_cast<rlim_t>(lowest.get()), before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoMoreDescriptors() { (void)::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(Listener, WithoutDescriptorsOneIsLetInAndTheRestWait) {
  boost::asio::io_context io;
  std::vector<server::Listener::Socket> in;
  std::vector<std::string> notes;
  server::Listener listener(
      io,
      [&in](server::Listener::Socket socket) { in.push_back(std::move(socket)); },
      [&notes](const std::string& line) { notes.push_back(line); });
  ListenAddress address{"127.0.0.1", 0};
  auto socket = os::listen_tcp(address);
  ASSERT_TRUE(socket) << socket.error().message;
  ASSERT_TRUE(listener.open(AF_INET, *std::move(socket)));
  std::vector<os::Fd> clients;
  clients.push_back(connected(address.port));
  while (in.empty()) io.run_one();
  for (int i = 0; i < 3; ++i) clients.push_back(connected(address.port));
  {
    const NoMoreDescriptors none;
    while (notes.empty()) io.run_one();
    EXPECT_EQ(in.size(), 2U);
    EXPECT_EQ(notes.front(), "no connection can be accepted: Too many open files");
    in.pop_back();
    while (in.size() < 2) io.run_one();
    EXPECT_EQ(notes.size(), 1U) << "there is none to spare yet";
  }
  while (in.size() < 3) io.run_one();
  EXPECT_EQ(notes.back(), "connections are accepted again");
}

}  // namespace
}  // namespace gflow::server
