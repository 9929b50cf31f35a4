// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <span>
#include <vector>

#include "core/device_reason.h"
#include "core/topology.h"

namespace gflow::placement {

/// GPUs of one node, by index.
using DeviceSet = std::bitset<kMaxTopologyGpus>;

/// How often jobs of each size are expected: weights, by number of GPUs. Sizes beyond the last
/// count as the last.
struct DemandProfile {
  static constexpr int kMaxGpus = 16;
  std::array<int, kMaxGpus + 1> weights{};

  /// What lab servers and clusters publish: mostly one GPU, then powers of two, few others.
  static DemandProfile usual();

  friend bool operator==(const DemandProfile&, const DemandProfile&) = default;
};

/// Which GPUs a job may have now.
struct DeviceQuestion {
  DeviceSet free;  ///< those that can be given to it
  int count = 0;   ///< how many it wants, at most as many as are free
  /// What each running job holds on the node: GPUs that come free together. May be empty; what is
  /// neither free nor held counts as one job's.
  std::span<const DeviceSet> held;
};

struct DeviceChoice {
  std::vector<int> devices;  ///< ascending
  DeviceReason reason;

  friend bool operator==(const DeviceChoice&, const DeviceChoice&) = default;
};

/// Chooses GPUs within a node by how they are connected. Of the sets that can be given:
///   1. those with the best ring bandwidth (RingTable);
///   2. of these the one that leaves the most for those who come next: the expected share of the
///      best possible bandwidth that later jobs get, sizes drawn from the profile. For up to 8 GPUs
///      the value of every way to divide the machine is worked out once (DivisionValues); for up to
///      16 it is looked one job ahead (NextJob), over every running job that may end first;
///   3. the nearest: fewest NUMA nodes, then nearest PCIe paths. Where the bandwidth of all sets of
///      a size is the same (a switch, or plain PCIe) this is what 1 and 2 go by;
///   4. the lowest indices.
/// Above 16 GPUs, and where nothing is known of the links, sets are grown from every free GPU by
/// the fastest pair, and the same order decides between them.
/// Immutable: one table serves all nodes of one topology, and any number of threads.
class DeviceTable {
 public:
  /// A machine of so many GPUs; an empty topology, or one of another number of GPUs, tells nothing.
  DeviceTable(int gpus, const Topology& topology, const DemandProfile& profile);
  ~DeviceTable();
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;

  /// REQUIRES: 0 <= count <= free.count(); free and held hold no GPU beyond those of the machine.
  [[nodiscard]] DeviceChoice choose(const DeviceQuestion& question) const;

 private:
  class Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace gflow::placement
