// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/share.h"
#include "core/machine.h"

namespace gflow {

/// A device that is not as it was last told of.
struct DeviceChange {
  enum class Quantity {
    Present,      ///< 0 or 1
    Usable,       ///< 0 or 1
    Utilization,  ///< percent
    MemoryUsed,   ///< bytes
    Power,        ///< milliwatts
  };
  std::string node;
  int gpu = 0;
  std::string uuid;
  Quantity quantity = Quantity::Present;
  std::optional<std::int64_t> before;  ///< empty: not known
  std::optional<std::int64_t> now;

  friend bool operator==(const DeviceChange&, const DeviceChange&) = default;
};
[[nodiscard]] std::string_view quantity_name(DeviceChange::Quantity quantity);  ///< "memory_used"
/// "GPU 0 of lab1 (GPU-5ad1): utilization 3% -> 97%"
[[nodiscard]] std::string change_text(const DeviceChange& change);

/// Of readings of a machine, what is worth telling: a device that came, went, broke or works again,
/// and utilisation, used memory and power that moved by at least a threshold of the whole since
/// they were last told of (so that what creeps is told of, too), or began or ceased to be nothing.
class DeviceChanges {
 public:
  /// What is new; of the first reading nothing is.
  [[nodiscard]] std::vector<DeviceChange> see(const Machine& machine, Share threshold);

 private:
  std::optional<std::map<std::string, Device>> told_;  ///< by UUID
};

}  // namespace gflow
