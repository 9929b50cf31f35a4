// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gflow {

/// Why a job got these GPUs of a node and not others: recorded with its placement. All 0 where
/// there was nothing to choose by (one GPU, or nothing known of the links).
struct DeviceReason {
  int mb_per_second = 0;   ///< ring bus bandwidth of the set
  int best_of_free = 0;    ///< of any set of that size among the GPUs free at that time
  int best_of_node = 0;    ///< of any set of that size on the node
  int numa_nodes = 0;      ///< that the set spans; 0: not known
  int links = 0;           ///< direct links within the set
  bool on_switch = false;  ///< all of them are on one switch

  friend bool operator==(const DeviceReason&, const DeviceReason&) = default;
};

/// The bandwidth as a share of the best of that size on the node, 0 to 100 %; 0: not known.
[[nodiscard]] int percent_of_best(const DeviceReason& reason);
/// The same as device_reason_text(), to be kept: see kept_text().
[[nodiscard]] std::string kept_device_reason(const DeviceReason& reason);
/// One clause: "ring of 80 GB/s, the best of this machine; 5 links, 1 NUMA node". "" for a reason
/// that says nothing.
[[nodiscard]] std::string device_reason_text(const DeviceReason& reason);

}  // namespace gflow
