// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string>

namespace gflow {

/// What an administrator says of a node, and a job may insist on.
struct Label {
  std::string key;
  std::string value;

  friend auto operator<=>(const Label&, const Label&) = default;
};

}  // namespace gflow
