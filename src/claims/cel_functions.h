// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "claims/cel_value.h"

/// What CEL computes of values; of parts that are not worked out the evaluator sees to.
namespace gflow::claims {

/// How much is compared and copied yet, before it takes too long.
struct CelBudget {
  long left = 100'000;

  /// False: it takes too long.
  [[nodiscard]] bool spend(std::size_t much) {
    left -= static_cast<long>(much);
    return left >= 0;
  }
};

/// Of a kind for which CEL has no such thing, too.
[[nodiscard]] std::unexpected<Error> no_overload(const std::string& name, const CelValue& value);
[[nodiscard]] std::unexpected<Error> too_long();
/// Whether they are the same: of different kinds they are not, but for numbers.
[[nodiscard]] Result<bool> is_equal(const CelValue& a, const CelValue& b, CelBudget& budget);
/// "==", "<", "in", "+", "-x", ...
[[nodiscard]] Result<CelValue> apply_operator(const std::string& name,
                                              const std::vector<CelValue>& of,
                                              CelBudget& budget);
/// size(x), quantity(x), ...
[[nodiscard]] Result<CelValue> apply_call(const std::string& name,
                                          const std::vector<CelValue>& of,
                                          CelBudget& budget);
/// x.startsWith(y), x.isGreaterThan(y), ...: x first.
[[nodiscard]] Result<CelValue> apply_method(const std::string& name,
                                            const std::vector<CelValue>& of,
                                            CelBudget& budget);

}  // namespace gflow::claims
