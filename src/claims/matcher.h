// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "claims/cel.h"
#include "claims/device.h"

namespace gflow::claims {

/// Which devices selectors take; what was worked out is kept, as the same few are asked about at
/// every decision. One thread has it.
class Matcher {
 public:
  /// Whether all of them hold. Errors: which one is not read here, or is wrong of this device.
  [[nodiscard]] Result<bool> hold(const std::vector<std::string>& selectors, const Device& device);

 private:
  struct Known {
    Result<CelExpression> expression;
    long steps = 0;                                        ///< that it took so far
    std::unordered_map<std::uint64_t, Result<bool>> of{};  ///< by the serial of the device
  };
  [[nodiscard]] const Result<bool>& holds(const std::string& selector, const Device& device);

  std::map<std::string, Known> known_;
  std::size_t kept_ = 0;  ///< answers
};

}  // namespace gflow::claims
