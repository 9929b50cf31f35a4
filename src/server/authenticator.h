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
#include "server/guest.h"
#include "server/identity.h"
#include "server/rate_limit.h"
#include "server/token_table.h"

namespace gflow::server {

/// Decides who asks: by the connection, over TCP by the token shown, over TLS by that or by the
/// certificate of the client.
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
  /// Who that is now, who asked before and showed this; without counting or writing anything.
  /// Errors: Permission, if it counts no more.
  [[nodiscard]] Result<Principal> still(const Guest& guest,
                                        const std::optional<std::string>& authorization,
                                        Now now);
  /// What is answered to who changes tokens too often: each change is written.
  [[nodiscard]] std::optional<Reply> slow_down(const Guest& guest,
                                               const Principal& caller,
                                               const Request& request,
                                               MonoTime now);
  /// Whether who is known by the connection may ask at all. Errors: Permission.
  [[nodiscard]] static Result<void> may_enter(const Rules& rules, std::uint32_t uid);

  /// What is to be in the log of a request once it is answered.
  struct Audited {
    std::string request_id;
    std::string by;    ///< who, by which credential
    std::string what;  ///< they asked for, and from where
  };
  /// Of what changes something in the name of who is not here, tokens, or what is only for
  /// operators and administrators; empty: nothing of it is.
  [[nodiscard]] static std::optional<Audited> audited(const Guest& guest,
                                                      const Principal& caller,
                                                      const Request& request);
  /// Writes it. Of what was refused no more than a page: who fills the log hides what they do.
  void audit(const Audited& request, int status, MonoTime now);

  [[nodiscard]] Identity& identity() { return identity_; }

 private:
  void note(std::string_view request_id, const std::string& text) const;
  void note_limit(std::string_view request_id,
                  const std::string& who,
                  std::string_view what,
                  RateLimit::Verdict verdict) const;
  [[nodiscard]] Decision who_asks(const Guest& guest, const Request& request, Now now);
  [[nodiscard]] Decision by_connection(const Guest& guest, const Request& request, MonoTime now);
  [[nodiscard]] Result<Principal> by_certificate(const Guest& guest, MonoTime now);
  [[nodiscard]] Result<Principal> by_authorization(std::string_view authorization, Now now);
  [[nodiscard]] Result<Principal> by_token(std::string_view secret, Now now);
  [[nodiscard]] Reply turn_down(const Guest& guest,
                                const Request& request,
                                const std::function<Error()>& why,
                                MonoTime now);

  Rules rules_;
  const TokenTable& tokens_;
  Audit audit_;
  Identity identity_;
  Accounts accounts_;
  // Who shows what is taken is not asked, so that nobody keeps others out who share an address.
  RateLimit failed_{10};
  RateLimit entrusted_{200};
  RateLimit refused_{60};
};

/// Of who did not show who asks; RFC 6750: what is to be shown.
[[nodiscard]] Reply unauthorized(const Error& error);
/// "alice (token 'laptop')", for the log.
[[nodiscard]] std::string text_of(const Principal& caller);

}  // namespace gflow::server
