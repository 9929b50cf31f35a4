// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace gflow {

/// What an administrator says of a node, and a job may insist on.
struct Label {
  std::string key;
  std::string value;

  friend auto operator<=>(const Label&, const Label&) = default;
};

/// Keys of labels that say, by a number, which jobs a node of a cluster admits: nobody gave them,
/// and they are in no text.
constexpr std::string_view kAdmitsPrefix = "gflow/admits-";

}  // namespace gflow
