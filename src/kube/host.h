// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/address.hpp>

namespace gflow::kube {

/// What the connections of one host are counted by: its address; of IPv6 the network (/64), as a
/// host may have any address of that.
[[nodiscard]] boost::asio::ip::address host_of(const boost::asio::ip::address& address);

}  // namespace gflow::kube
