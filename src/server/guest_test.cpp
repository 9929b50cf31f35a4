// SPDX-License-Identifier: Apache-2.0
#include "server/guest.h"

#include <gtest/gtest.h>

namespace gflow::server {
namespace {

std::string who_from(const std::string& address, std::optional<std::uint32_t> local_uid = {}) {
  return counted_as(
      {.peer = {7, 1, {7}}, .via = Via::Tls, .address = address, .local_uid = local_uid});
}

TEST(CountedAs, OnThisMachineItIsTheAccount) {
  EXPECT_EQ(counted_as({.peer = {1000, 1, {1000}}}), "uid 1000");
  EXPECT_EQ(counted_as({.peer = {1000, 1, {1000}}, .via = Via::Tcp, .address = "127.0.0.1:40000"}),
            "uid 1000");
  EXPECT_EQ(who_from("127.0.0.1:40000", 1000), who_from("[::1]:40001", 1000));
  EXPECT_NE(who_from("127.0.0.1:40000", 1000), who_from("127.0.0.1:40000", 1001));
  EXPECT_NE(who_from("127.0.0.1:40000", 1000), "uid 1000") << "apart from the socket";
}

TEST(CountedAs, FromElsewhereItIsTheAddressWhateverThePort) {
  EXPECT_EQ(who_from("10.0.0.2:40000"), "10.0.0.2");
  EXPECT_EQ(who_from("10.0.0.2:40001"), who_from("10.0.0.2:2"));
  EXPECT_NE(who_from("10.0.0.2:40000"), who_from("10.0.0.3:40000"));
}

TEST(CountedAs, AddressesThisMachineCallsItselfByAreOne) {
  EXPECT_EQ(who_from("127.0.0.1:40000"), "127.0.0.0/8");
  EXPECT_EQ(who_from("127.255.3.4:40000"), "127.0.0.0/8");
  EXPECT_NE(who_from("12.7.0.1:40000"), "127.0.0.0/8");
}

TEST(CountedAs, OfIpv6ItIsTheNetworkOfOneCustomer) {
  EXPECT_EQ(who_from("[2001:db8:1:2::1]:40000"), who_from("[2001:db8:1:2:ffff::2]:40001"));
  EXPECT_NE(who_from("[2001:db8:1:2::1]:40000"), who_from("[2001:db8:1:3::1]:40000"));
  EXPECT_EQ(who_from("[2001:db8:1:2::1]:40000"), "net 20010db800010002");
  EXPECT_EQ(who_from("[fe80::1%eth0]:40000"), "[fe80::1%eth0]") << "what is not read is itself";
}

}  // namespace
}  // namespace gflow::server
