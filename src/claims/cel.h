// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "claims/cel_syntax.h"

/// Selectors of devices: the part of CEL that they use, with the meaning it has for kube-scheduler.
namespace gflow::claims {

/// One that was read. Whatever it says, working it out ends: parts are worked out a bounded number
/// of times, and no text or list grows without bound.
class CelExpression {
 public:
  /// Errors: Usage, with the part that is not read here. Whether it is right the API server said
  /// when it took it.
  [[nodiscard]] static Result<CelExpression> read(std::string_view text);

  /// Of a device, as device_value() makes one. Errors: Usage where CEL has one, as with a field
  /// that is not there; Exhausted where it takes too long.
  /// `steps`: what that took is added, of about as many for each part and each 16 bytes of text.
  [[nodiscard]] Result<bool> holds(const CelValue& device, long& steps) const;

 private:
  explicit CelExpression(CelSyntax syntax) : syntax_(std::move(syntax)) {}
  CelSyntax syntax_;
};

}  // namespace gflow::claims
