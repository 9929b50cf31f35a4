// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/listen_address.h"
#include "base/result.h"
#include "os/fd.h"

namespace gflow::os {

/// A socket that listens there, non-blocking, closed on exec; "0.0.0.0" and "::" are all addresses
/// of this machine. The port it got is put into `address`. Errors: Failure, also if another program
/// listens there; NotFound if this machine has no such address.
[[nodiscard]] Result<Fd> listen_tcp(ListenAddress& address);

/// The uid of who is at the other end of a connection that was just accepted: whose the socket
/// there is, as the kernel's table of sockets has it (sock_diag(7)). Errors: NotFound if that
/// socket is of another network namespace or gone already.
[[nodiscard]] Result<std::uint32_t> owner_of_other_end(int socket);

/// "10.0.0.2:41234", "[fe80::1]:41234"; "" of a connection that is no more. An IPv4 address that a
/// socket of IPv6 tells is shown as what it is.
[[nodiscard]] std::string address_of_other_end(int socket);

/// Whether the machine at the other end has not confirmed all that was written, also of a
/// connection that it has reset; of a pair of sockets whether something is unread there.
[[nodiscard]] bool is_unsent(int socket);

}  // namespace gflow::os
