// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/listen_address.h"
#include "base/result.h"
#include "os/fd.h"
#include "server/guest.h"
#include "server/tls_context.h"

namespace gflow::server {

/// Connections from other machines: shakes hands and encrypts on a thread of its own, and gives
/// what is said within as a socket of this machine. Who is slow to shake hands, or stops halfway,
/// keeps nobody waiting: each has 10 s.
class TlsFront {
 public:
  /// One that has shaken hands.
  struct Arrival {
    os::Fd plain;  ///< what is said within
    Guest guest;   ///< with its address, and the common name in the certificate it showed
  };
  struct Limits {
    std::size_t connections = 1024;
    std::size_t of_each = 64;  ///< an address, of this machine an account
  };
  /// Called on the front's thread.
  using Welcome = std::function<void(Arrival)>;

  /// `note`: as of Listener, on that thread, too.
  TlsFront(TlsContext context,
           Limits limits,
           Welcome welcome,
           std::function<void(const std::string& line)> note);
  ~TlsFront();
  TlsFront(const TlsFront&) = delete;
  TlsFront& operator=(const TlsFront&) = delete;

  /// Binds and listens; the port it got is put into `address`.
  [[nodiscard]] Result<void> listen(ListenAddress& address);
  void start();
  /// Accepts nobody more.
  void close();
  /// Cuts all connections; the thread has ended.
  void finish();

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace gflow::server
