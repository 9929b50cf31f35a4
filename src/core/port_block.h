// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gflow {

/// Consecutive TCP ports from `base` on; none where `count` is 0.
struct PortBlock {
  int base = 0;
  int count = 0;
  friend bool operator==(const PortBlock&, const PortBlock&) = default;
};

}  // namespace gflow
