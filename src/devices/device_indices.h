// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "core/machine.h"

namespace gflow::devices {

/// The index of each device of a node. A source counts what it finds now; what jobs hold is known
/// by index, so that an index has to go on naming the same device when one before it is gone or
/// another has come. Of whatever vendor. One thread.
class DeviceIndices {
 public:
  DeviceIndices() = default;
  /// What attempts held when the daemon started, with index and UUID at least. A UUID or an index
  /// that comes a second time counts once.
  explicit DeviceIndices(const std::vector<Device>& held);

  /// The reading with its devices, and their topology, at the index each of them has had, by UUID.
  /// A new one gets the index of its source if that is free, else the first that is. One that is
  /// not there any more stays, unusable and without readings, while `is_held` of its index.
  [[nodiscard]] Machine applied_to(Machine reading, const std::function<bool(int)>& is_held);

  /// Whether one is shown only because something of it is held.
  [[nodiscard]] bool has_missing() const { return has_missing_; }

 private:
  std::vector<Device> known_;  ///< by index
  bool has_missing_ = false;
};

}  // namespace gflow::devices
