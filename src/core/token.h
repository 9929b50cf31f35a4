// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "core/job.h"
#include "core/principal.h"

/// What lets a program ask in somebody's name from elsewhere: a secret, of which only a digest is
/// kept.
namespace gflow {

struct Token {
  std::string name;  ///< one of its owner's has it
  User owner;
  Scope scope = Scope::Read;
  std::string digest;  ///< SHA-256 of the secret, 64 lower-case hex digits
  WallTime created{};
  std::optional<WallTime> expires = {};  ///< empty: never

  friend bool operator==(const Token&, const Token&) = default;
};

constexpr std::size_t kMaxTokensPerUser = 64;
constexpr std::chrono::seconds kTokenLife = std::chrono::hours(30 * 24);  ///< unless told

[[nodiscard]] bool has_expired(const Token& token, WallTime now);

/// "gflow_" and 64 lower-case hex digits: 256 bits nobody can guess, which tools that look for
/// secrets in files recognise.
constexpr std::string_view kTokenPrefix = "gflow_";
constexpr std::size_t kTokenBytes = 32;
[[nodiscard]] bool is_token_secret(std::string_view text);

/// What stands behind "Bearer" in an Authorization header (RFC 6750); empty for another scheme.
[[nodiscard]] std::optional<std::string_view> bearer_of(std::string_view authorization);

/// Errors: Usage for what is not 1 to 64 letters, digits, '.', '-' and '_'.
[[nodiscard]] Result<void> check_token_name(std::string_view name);
/// "read", "submit", "operate", "admin". Errors: Usage.
[[nodiscard]] Result<Scope> parse_scope(std::string_view text);

}  // namespace gflow
