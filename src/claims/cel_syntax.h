// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "claims/cel_value.h"

/// How expressions of CEL are written, so far as selectors of devices have to do with it.
namespace gflow::claims {

/// One of an expression; its parts are numbers of others of it.
struct CelNode {
  enum class Kind {
    Literal,   ///< value
    Name,      ///< a variable
    Field,     ///< part.name; is_optional: part.?name
    Index,     ///< part[part]; is_optional: part[?part]
    Has,       ///< has(part.name)
    Call,      ///< name(parts)
    Method,    ///< part.name(further parts)
    Operator,  ///< name is "+", "==", "in", "-x" (negation), "!x"
    And,       ///< of two and more
    Or,        ///< of two and more
    Choice,    ///< part ? part : part
    List,      ///< of parts
    Bind,      ///< cel.bind(name, part, part)
    Each,      ///< part.macro(name, part, ...): all, exists, exists_one, filter, map
  };
  Kind kind = Kind::Literal;
  std::string name{};
  std::string macro{};
  CelValue value{};
  std::vector<std::size_t> parts{};
  bool is_optional = false;
  int depth = 1;
};

struct CelSyntax {
  std::vector<CelNode> nodes;  ///< parts stand before what they are of; the last one is the whole
};

/// Errors: Usage, with the part that is not read here, whether it is CEL or not.
[[nodiscard]] Result<CelSyntax> read_cel(std::string_view text);

}  // namespace gflow::claims
