// SPDX-License-Identifier: Apache-2.0
#include "kube/status_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "os/fd.h"

namespace gflow::kube {
namespace {

/// As 127.0.0.`from`.
os::Fd connected(const ListenAddress& address, std::uint32_t from = 1) {
  os::Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval most{.tv_sec = 60, .tv_usec = 0};  // reached where something is broken
  EXPECT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most), 0);
  sockaddr_in name{};
  auto* const raw = reinterpret_cast<sockaddr*>(&name);  // NOLINT: as the calls take it
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + from);
  EXPECT_EQ(::bind(client.get(), raw, sizeof name), 0);
  name.sin_port = htons(address.port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client.get(), raw, sizeof name), 0);
  return client;
}

void say(const os::Fd& client, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // it hung up
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

/// All that comes until the server hangs up.
std::string heard(const os::Fd& client) {
  std::string text;
  std::array<char, 4096> some{};
  while (true) {
    const ssize_t got = ::recv(client.get(), some.data(), some.size(), 0);
    if (got < 0 && errno == EAGAIN) return text + "... and it does not hang up";
    if (got <= 0) return text;
    text.append(some.data(), static_cast<std::size_t>(got));
  }
}

class ServedPages : public ::testing::Test {
 protected:
  ServedPages() { listen({}); }
  void listen(StatusLimits limits) {
    server_.reset();
    address_.port = 0;
    auto listening = StatusServer::listen(
        address_,
        {{"/ok", [] { return Page{200, "ok"}; }}, {"/bad", [] { return Page{503, "it waits\n"}; }}},
        limits);
    EXPECT_TRUE(listening) << listening.error().message;
    if (listening) server_ = *std::move(listening);
  }
  [[nodiscard]] std::string ask(std::string_view request) const {
    const os::Fd client = connected(address_);
    say(client, request);
    return heard(client);
  }
  [[nodiscard]] std::string get(const std::string& path) const {
    return ask("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
  }

  void expect_slow_one_is_answered_in_flood() const {
    const os::Fd slow = connected(address_, 2);
    say(slow, "GET /ok HT");
    std::vector<os::Fd> flood;
    for (int i = 0; i < 300; ++i) flood.push_back(connected(address_, 3));
    EXPECT_EQ(heard(flood.front()), "") << "the oldest of those that have most";
    say(slow, "TP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(heard(slow).ends_with("ok"));
  }

  ListenAddress address_{"127.0.0.1", 0};
  std::unique_ptr<StatusServer> server_;
};

TEST_F(ServedPages, AreShownToGetAndHead) {
  EXPECT_EQ(get("/ok"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 2\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\nok");
  EXPECT_TRUE(get("/ok?verbose").ends_with("\r\n\r\nok"));
  EXPECT_TRUE(get("/bad").starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_TRUE(get("/bad").ends_with("\r\n\r\nit waits\n"));
  EXPECT_TRUE(get("/").starts_with("HTTP/1.1 404 Not Found\r\n"));
  const std::string head = ask("HEAD /ok HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(head.contains("\r\nContent-Length: 2\r\n") && head.ends_with("\r\n\r\n")) << head;
}

TEST_F(ServedPages, RefuseWhatIsNoQuestion) {
  const std::string posted = ask("POST /ok HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_TRUE(posted.starts_with("HTTP/1.1 405 ") && posted.contains("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_TRUE(ask("\x16\x03\x01 hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
}

TEST_F(ServedPages, AMegabyteOfHeadersIsNotRead) {
  const std::string much = "GET /ok HTTP/1.1\r\nX: " + std::string(1 << 20, 'a') + "\r\n\r\n";
  EXPECT_TRUE(ask(much).starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(get("/ok").ends_with("ok"));
}

/// Those that were there first have to go, and nobody waits for them.
TEST_F(ServedPages, HundredsThatNeverAskKeepNobodyFromAnAnswer) {
  listen({.connections = 64});
  std::vector<os::Fd> idle;
  for (int i = 0; i < 500; ++i) {
    idle.push_back(connected(address_));
    say(idle.back(), "GET /ok HT");
  }
  EXPECT_TRUE(get("/ok").ends_with("ok"));
  EXPECT_EQ(heard(idle.front()), "") << "it was hung up on";
}

TEST_F(ServedPages, ManyOfOneAddressKeepNobodyOfAnotherFromAnAnswerThatIsSlowToAsk) {
  listen({.connections = 64});
  expect_slow_one_is_answered_in_flood();
}

/// There the addresses of IPv4 look like those of one network of IPv6.
TEST_F(ServedPages, SoItIsWhereItListensOnBothFamilies) {
  address_.host = "::";
  listen({.connections = 64});
  expect_slow_one_is_answered_in_flood();
}

TEST_F(ServedPages, WhoAsksNothingIsHungUpOn) {
  listen({.patience = std::chrono::milliseconds(20)});
  const os::Fd idle = connected(address_);
  say(idle, "GET /ok HT");
  EXPECT_EQ(heard(idle), "");
}

TEST_F(ServedPages, EndWithTheirServerWhoeverIsConnected) {
  const os::Fd idle = connected(address_);
  EXPECT_TRUE(get("/ok").ends_with("ok"));
  server_.reset();
  EXPECT_EQ(heard(idle), "");
}

TEST_F(ServedPages, AnAddressThatIsTakenIsNamed) {
  const auto second = StatusServer::listen(address_, {});
  ASSERT_FALSE(second);
  EXPECT_TRUE(second.error().message.contains(to_text(address_))) << second.error().message;
}

}  // namespace
}  // namespace gflow::kube
