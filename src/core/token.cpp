// SPDX-License-Identifier: Apache-2.0
#include "core/token.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/translate.h"
#include "core/machine.h"

namespace gflow {
namespace {

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

bool has_expired(const Token& token, WallTime now) {
  return token.expires && *token.expires <= now;
}

bool is_token_secret(std::string_view text) {
  if (!text.starts_with(kTokenPrefix)) return false;
  text.remove_prefix(kTokenPrefix.size());
  return text.size() == 2 * kTokenBytes && std::ranges::all_of(text, is_hex_digit);
}

std::optional<std::string_view> bearer_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (to_lower(authorization.substr(0, kScheme.size())) != kScheme) return std::nullopt;
  return trim(authorization.substr(kScheme.size()));
}

Result<void> check_token_name(std::string_view name) {
  // These two are no names in the path of a URL.
  if (is_node_name(name) && name != "." && name != "..") return {};
  return fail(Code::Usage,
              tr_format("'{}' is not a token name: 1 to 64 letters, digits, '.', '-' and '_', not "
                        "'.' or '..'",
                        printable(name.substr(0, 100))));
}

Result<Scope> parse_scope(std::string_view text) {
  constexpr std::array kScopes = {Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin};
  for (const Scope scope : kScopes) {
    if (text == scope_name(scope)) return scope;
  }
  return fail(Code::Usage,
              tr_format("'{}' is not a scope: read, submit, operate or admin", printable(text)));
}

}  // namespace gflow
