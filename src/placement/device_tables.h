// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "placement/device_set.h"
#include "placement/ledger.h"

namespace gflow::placement {

/// The device tables of a cluster's nodes: one for each topology there is, made when first needed.
class DeviceTables {
 public:
  /// Null where nothing is known of the links between the node's devices. Valid until the next
  /// call.
  [[nodiscard]] const DeviceTable* of(const Node& node);

 private:
  // Nodes that have a topology together, or read the same one, share its table: hence both are
  // owned by all that name them.
  struct Known {
    std::shared_ptr<const Topology> topology;
    std::shared_ptr<const DeviceTable> table;
  };
  std::map<const Topology*, Known> known_;
};

/// So many devices of the node, of those that `fits` says can be given.
[[nodiscard]] DeviceChoice choose_devices(const DeviceTable& table,
                                          const Ledger& ledger,
                                          NodeIndex node,
                                          std::span<const std::uint8_t> fits,
                                          int count);

}  // namespace gflow::placement
