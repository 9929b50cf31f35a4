// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/token.h"

namespace gflow::server {

/// A secret nobody can guess, to be shown once.
[[nodiscard]] std::string make_token_secret();
/// What is kept of it: SHA-256, as 64 lower-case hex digits.
[[nodiscard]] std::string token_digest(std::string_view secret);

/// The tokens there are. Any thread may look; the loop alone replaces them.
class TokenTable {
 public:
  using Tokens = std::vector<Token>;

  [[nodiscard]] std::shared_ptr<const Tokens> all() const;
  void replace(Tokens tokens);
  /// The one with this secret, expired or not. How long that takes says nothing of the digests.
  [[nodiscard]] std::optional<Token> find_by_secret(std::string_view secret) const;

 private:
  mutable std::mutex mutex_;  ///< over the pointer
  std::shared_ptr<const Tokens> tokens_ = std::make_shared<const Tokens>();
};

}  // namespace gflow::server
