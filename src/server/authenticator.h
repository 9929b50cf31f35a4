// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/principal.h"
#include "os/user.h"
#include "server/accounts.h"
#include "server/exchange.h"
#include "server/failed_tries.h"
#include "server/guest.h"
#include "server/identity.h"
#include "server/token_table.h"

namespace gflow::server {

/// Decides who asks: by the connection, and over TCP by the token shown.
class Authenticator {
 public:
  struct Rules {
    bool any_user = false;  ///< everyone with an account; else the own user and root
    std::uint32_t own_uid = 0;
  };
  /// Writes a line into the log.
  using Audit = std::function<void(const std::string& line)>;
  using Decision = std::variant<Principal, Reply>;

  Authenticator(Rules rules, const TokenTable& tokens, Audit audit);

  /// Who asks, or what they are answered instead of what they asked for.
  [[nodiscard]] Decision authenticate(const Guest& guest, const Request& request, Now now);
  /// Whether who is known by the connection may ask at all. Errors: Permission.
  [[nodiscard]] static Result<void> may_enter(const Rules& rules, std::uint32_t uid);

  /// What is to be in the log of a request once it is answered, without its status; empty if
  /// nothing is: what changes something in the name of who is not here, or what is only for
  /// administrators and owners of tokens.
  [[nodiscard]] static std::string audited(const Guest& guest,
                                           const Principal& caller,
                                           const Request& request);
  /// Writes it.
  void audit(const std::string& what, int status) const;

  [[nodiscard]] Identity& identity() { return identity_; }

 private:
  [[nodiscard]] Decision by_connection(const Guest& guest, const Request& request, MonoTime now);
  [[nodiscard]] Result<Principal> by_certificate(const Guest& guest, MonoTime now);
  [[nodiscard]] Result<Principal> by_token(std::string_view secret, Now now);
  [[nodiscard]] Reply turn_down(const Guest& guest,
                                const Request& request,
                                const Error& why,
                                MonoTime now);

  Rules rules_;
  const TokenTable& tokens_;
  Audit audit_;
  Identity identity_;
  Accounts accounts_;
  FailedTries failed_;
};

/// Whom failed tries are counted for: an address without its port, of IPv6 the network of one
/// customer (/64); on this machine the account.
[[nodiscard]] std::string tried_by(const Guest& guest);

}  // namespace gflow::server
