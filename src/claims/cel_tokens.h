// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "claims/cel_value.h"

namespace gflow::claims {

/// A word of an expression of CEL.
struct CelToken {
  enum class Kind { End, Name, Literal, Sign };
  Kind kind = Kind::End;
  std::string text{};  ///< as it stands there; for a literal that is a number without its suffix
  CelValue value{};    ///< of a literal
  /// Of a literal of 2^63, which only has a value behind a minus.
  bool is_least = false;
};

/// All of them, End last. Errors: Usage, with the part that is none.
[[nodiscard]] Result<std::vector<CelToken>> cel_tokens_of(std::string_view text);

}  // namespace gflow::claims
