// SPDX-License-Identifier: Apache-2.0
#include "server/token_table.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <array>
#include <iterator>

#include "os/random.h"

namespace gflow::server {

std::string make_token_secret() { return std::string(kTokenPrefix) + os::random_hex(kTokenBytes); }

std::string token_digest(std::string_view secret) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()),  // NOLINT: bytes of the text
         secret.size(),
         digest.data());
  std::string text;
  for (const unsigned char byte : digest) {
    fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  }
  return text;
}

std::shared_ptr<const TokenTable::Tokens> TokenTable::all() const {
  const std::lock_guard lock(mutex_);
  return tokens_;
}

void TokenTable::replace(Tokens tokens) {
  auto fresh = std::make_shared<const Tokens>(std::move(tokens));
  const std::lock_guard lock(mutex_);
  tokens_ = std::move(fresh);
}

std::optional<Token> TokenTable::find_by_secret(std::string_view secret) const {
  if (!is_token_secret(secret)) return std::nullopt;
  const std::string digest = token_digest(secret);
  std::optional<Token> found;
  const auto tokens = all();
  for (const Token& token : *tokens) {
    const bool is_it = token.digest.size() == digest.size() &&
                       CRYPTO_memcmp(token.digest.data(), digest.data(), digest.size()) == 0;
    if (is_it) found = token;
  }
  return found;
}

}  // namespace gflow::server
