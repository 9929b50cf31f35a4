// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "base/memory.h"
#include "base/result.h"
#include "server/guest.h"

namespace gflow::server {

/// How much of the server one user may take at once; who comes from elsewhere is one by address.
constexpr Memory kMaxBody = Memory::mib(16);
constexpr Memory kMaxBodiesPerUser = Memory::mib(64);
constexpr Memory kMaxRepliesPerUser = Memory::mib(64);  ///< written and not read yet

/// Counts what each user has open, so that one of them cannot take the daemon from the others; and
/// what all have, apart those on this machine and those from elsewhere: however many strangers
/// come, they leave what is of this machine.
class Admission {
 public:
  /// Of all who come one way.
  struct Limits {
    std::size_t connections = 0;  ///< of those on this machine a quarter is the socket's alone
    Memory bodies;
  };
  /// What was taken, given back when it is let go of.
  using Lease = std::shared_ptr<void>;

  Admission(Limits here, Limits elsewhere, std::size_t max_connections_per_user);

  /// Of what one user may have open a quarter is the socket's alone, too. Errors: Exhausted.
  [[nodiscard]] Result<Lease> take_connection(const Guest& guest);
  /// Room for a request body. Errors: Exhausted.
  [[nodiscard]] Result<Lease> take_body(const Guest& guest, Memory size);
  /// Room for an answer until it is sent. Errors: Exhausted.
  [[nodiscard]] Result<Lease> take_reply(const Guest& guest, Memory size);

 private:
  struct Use {
    std::size_t connections = 0;
    Memory bodies;
    Memory replies;

    friend bool operator==(const Use&, const Use&) = default;
  };
  struct All {
    Limits most;
    Use use;
  };
  struct Core {
    All here;
    All elsewhere;
    std::map<std::string, Use> users;  ///< those who have anything

    All& all_of(Via via) { return via == Via::Tls ? elsewhere : here; }
  };
  [[nodiscard]] Lease lend(const Guest& guest, const Use& what);

  std::size_t max_connections_per_user_;
  std::shared_ptr<Core> core_ = std::make_shared<Core>();
};

}  // namespace gflow::server
