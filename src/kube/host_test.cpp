// SPDX-License-Identifier: Apache-2.0
#include "kube/host.h"

#include <gtest/gtest.h>

namespace gflow::kube {
namespace {

std::string host_of(const char* address) {
  return kube::host_of(boost::asio::ip::make_address(address)).to_string();
}

TEST(KubeHost, IsAnAddressOrANetworkOfIpv6) {
  EXPECT_EQ(host_of("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(host_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
  EXPECT_EQ(host_of("2001:db8:1:2::7"), "2001:db8:1:2::");
  EXPECT_EQ(host_of("2001:db8:1:3::7"), "2001:db8:1:3::");
  EXPECT_EQ(host_of("::ffff:10.0.0.1"), "10.0.0.1");
}

}  // namespace
}  // namespace gflow::kube
