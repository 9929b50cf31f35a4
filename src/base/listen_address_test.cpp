// SPDX-License-Identifier: Apache-2.0
#include "base/listen_address.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

TEST(ListenAddress, IsReadAndWritten) {
  const struct {
    const char* text;
    std::vector<ListenAddress> addresses;
    const char* written;  ///< the first
  } rows[] = {
      {"127.0.0.1:8000", {{"127.0.0.1", 8000}}, "127.0.0.1:8000"},
      {"127.8.0.255:0", {{"127.8.0.255", 0}}, "127.8.0.255:0"},
      {"localhost:65535", {{"127.0.0.1", 65535}, {"::1", 65535}}, "127.0.0.1:65535"},
      {"LocalHost:1", {{"127.0.0.1", 1}, {"::1", 1}}, "127.0.0.1:1"},
      {"[::1]:8000", {{"::1", 8000}}, "[::1]:8000"},
  };
  for (const auto& row : rows) {
    const auto read = parse_loopback(row.text);
    ASSERT_TRUE(read) << row.text << ": " << read.error().message;
    EXPECT_EQ(*read, row.addresses) << row.text;
    EXPECT_EQ(to_text(read->front()), row.written);
  }
}

TEST(ListenAddress, ThatOthersReachIsReadWhole) {
  for (const char* text : {"10.0.0.5:8443", "0.0.0.0:0", "[::]:8443", "[2001:db8::5]:8443"}) {
    const auto read = parse_listen_address(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(to_text(*read), text);
  }
}

class NoLoopback : public testing::TestWithParam<const char*> {};

TEST_P(NoLoopback, IsRefusedByName) {
  const std::string text = GetParam();
  const auto read = parse_loopback(text);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::Usage);
  EXPECT_NE(read.error().message.find("'" + text + "'"), std::string::npos) << read.error().message;
}

INSTANTIATE_TEST_SUITE_P(ListenAddress,
                         NoLoopback,
                         testing::Values("",
                                         ":",
                                         "8000",
                                         ":8000",
                                         "127.0.0.1",
                                         "127.0.0.1:",
                                         "127.0.0.1:65536",
                                         "127.0.0.1:-1",
                                         "127.0.0.1:80 ",
                                         "127.0.0.1:http",
                                         "::1:8000",
                                         "[::1]",
                                         "[::1]8000",
                                         "[::1:8000",
                                         "0.0.0.0:8000",
                                         "[::]:8000",
                                         "10.0.0.1:8000",
                                         "127.0.0:8000",
                                         "127.0.0.256:8000",
                                         "127.0.0.1.evil.example:8000",
                                         "localhost.evil.example:8000",
                                         "lab1:8000",
                                         "[fe80::1]:8000"));

class NoListenAddress : public testing::TestWithParam<const char*> {};

TEST_P(NoListenAddress, IsRefused) {
  const auto read = parse_listen_address(GetParam());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::Usage);
}

INSTANTIATE_TEST_SUITE_P(ListenAddress,
                         NoListenAddress,
                         testing::Values("[1::2::3]:0",
                                         "[::g]:1",
                                         "[fe80::1%eth0]:1",
                                         "[10.0.0.5]:1",
                                         "10.0.0:1",
                                         "10.0.0.256:1",
                                         "10.0.0.5",
                                         "[::]",
                                         "::1:8443",
                                         "lab1:8443"));

class HostOfThisMachine : public testing::TestWithParam<const char*> {};

TEST_P(HostOfThisMachine, IsKnownByItsName) { EXPECT_TRUE(is_loopback_host(GetParam())); }

INSTANTIATE_TEST_SUITE_P(ListenAddress,
                         HostOfThisMachine,
                         testing::Values("localhost",
                                         "LOCALHOST:8000",
                                         "localhost.",
                                         "localhost.:8000",
                                         "127.0.0.1",
                                         "127.1.2.3:9",
                                         "[::1]",
                                         "[::1]:8000"));

class HostOfAnother : public testing::TestWithParam<const char*> {};

TEST_P(HostOfAnother, IsNotTakenForThisMachine) { EXPECT_FALSE(is_loopback_host(GetParam())); }

INSTANTIATE_TEST_SUITE_P(ListenAddress,
                         HostOfAnother,
                         testing::Values("",
                                         ".",
                                         "localhost..",
                                         "evil.example",
                                         "localhost.evil.example",
                                         "127.0.0.1.evil.example",
                                         "127.evil.example.1",
                                         "1270.0.0.1",
                                         "localhost:what",
                                         "localhost:80@evil.example",
                                         "127.0.0.1:x/../evil",
                                         "[::1]:@evil",
                                         "::1",
                                         "[::2]",
                                         "gflow:8000"));

}  // namespace
}  // namespace gflow
