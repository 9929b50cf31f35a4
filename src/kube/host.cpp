// SPDX-License-Identifier: Apache-2.0
#include "kube/host.h"

#include <algorithm>

namespace gflow::kube {

namespace ip = boost::asio::ip;

ip::address host_of(const ip::address& address) {
  if (address.is_v4()) return address;
  const ip::address_v6 whole = address.to_v6();
  // As a socket that listens on both has those of IPv4, which would all be of one network.
  if (whole.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, whole);
  constexpr std::size_t kNetwork = 8;
  auto bytes = whole.to_bytes();
  std::fill(bytes.begin() + kNetwork, bytes.end(), 0);
  return ip::address_v6(bytes, whole.scope_id());
}

}  // namespace gflow::kube
