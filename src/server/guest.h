// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "os/user.h"

namespace gflow::server {

/// Which way somebody came.
enum class Via {
  Unix,  ///< the socket
  Tcp,   ///< loopback
  Tls,   ///< from any machine
};

/// Who connected, as far as the connection tells.
struct Guest {
  os::Peer peer;
  Via via = Via::Unix;
  bool is_known = true;      ///< whose the connection is
  std::string address = {};  ///< "10.0.0.2:41234"; "" of the socket
  /// Why nothing is done for who shows nothing else; told in answer to what they ask.
  std::optional<Error> refusal = {};
  std::string certificate = {};  ///< what it names, of one that our CA vouches for; "" for none
  /// Of one who came by TLS from this machine: the account. Addresses of it are at everybody's
  /// hand.
  std::optional<std::uint32_t> local_uid = {};
  /// By TLS: whether of what was taken in for them something has not come to their machine. Of who
  /// carries it, and of the session.
  std::shared_ptr<std::atomic<bool>> has_some_to_come = {};
};

/// Whom connections and failed tries are counted for: from elsewhere an address without its port,
/// of IPv6 the network of one customer (/64), 127.0.0.0/8 being one; on this machine the account.
[[nodiscard]] std::string counted_as(const Guest& guest);

}  // namespace gflow::server
