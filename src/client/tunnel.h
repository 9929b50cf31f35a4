// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "client/remote.h"
#include "os/child.h"

namespace gflow::client {

/// A connection with TLS to another machine, by gflow-tls.
struct Tunnel {
  os::Child child;
  std::string fingerprint;  ///< of the certificate met

  Tunnel() = default;
  Tunnel(Tunnel&&) = default;
  Tunnel& operator=(Tunnel&&) = default;
  /// Waits for the program's end, which comes with that of the connection.
  ~Tunnel();
};

/// Errors: Unreachable.
[[nodiscard]] Result<Tunnel> open_tunnel(const Remote& remote);
/// Whether it is the machine that was added. Errors: Permission, saying what to do.
[[nodiscard]] Result<void> check_pin(const Remote& remote, const Tunnel& tunnel);

}  // namespace gflow::client
