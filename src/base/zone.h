// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/time.h"

namespace gflow {

/// What local time is ahead of UTC, at any instant: it changes when the clocks do.
class Zone {
 public:
  using Offset = std::chrono::seconds (*)(WallTime);

  Zone() = default;  ///< UTC
  /// A place whose clocks never change.
  Zone(std::chrono::seconds fixed) : fixed_(fixed) {}  // NOLINT(google-explicit-constructor)
  Zone(Offset ahead) : offset_(ahead) {}               // NOLINT(google-explicit-constructor)

  [[nodiscard]] std::chrono::seconds offset(WallTime at) const {
    return offset_ == nullptr ? fixed_ : offset_(at);
  }
  /// The instant at which clocks show `local`, given as if it were UTC. The first of the two where
  /// they are set back over it; where they are set forward over it, as late as if they had not
  /// been.
  [[nodiscard]] WallTime instant(WallTime local) const;

 private:
  std::chrono::seconds fixed_{0};
  Offset offset_ = nullptr;
};

}  // namespace gflow
