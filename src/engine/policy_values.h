// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/event.h"

namespace gflow::engine {

/// A setting of the policy as text, by the name the configuration has for it.
struct PolicyValue {
  std::string name;
  std::string value;

  friend bool operator==(const PolicyValue&, const PolicyValue&) = default;
};

/// Every setting there is, in the order of the table.
[[nodiscard]] std::vector<PolicyValue> policy_values(const Policy& policy);
/// Sets one. Errors: Usage with the nearest name there is, or for a value that is none of its kind.
[[nodiscard]] Result<void> set_policy_value(Policy& policy, const PolicyValue& value);

}  // namespace gflow::engine
