// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/refusal.h"
#include "base/result.h"
#include "core/token.h"

/// Tokens over the wire.
namespace gflow::api {

/// The request to make one.
struct TokenRequest {
  std::string name;
  Scope scope = Scope::Read;
  std::optional<std::chrono::seconds> expires_in = kTokenLife;  ///< empty: never
};
[[nodiscard]] std::string write(const TokenRequest& request);
[[nodiscard]] Asked<TokenRequest> read_token_request(std::string_view json);

/// A token as it is shown: without its secret.
struct TokenView {
  std::string name;
  std::string user;  ///< its owner
  Scope scope = Scope::Read;
  WallTime created{};
  std::optional<WallTime> expires = {};
  bool expired = false;
};
[[nodiscard]] std::string write_tokens(const std::vector<TokenView>& tokens);
[[nodiscard]] Result<std::vector<TokenView>> read_tokens(std::string_view json);

/// The answer to who made one: the only time its secret is told.
struct NewToken {
  TokenView view;
  std::string secret;
};
[[nodiscard]] std::string write(const NewToken& token);
[[nodiscard]] Result<NewToken> read_new_token(std::string_view json);

}  // namespace gflow::api
