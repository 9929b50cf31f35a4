// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/topology.h"

namespace gflow::placement {

/// GPUs of a machine with at most kMaxRingGpus: bit i is GPU i.
using GpuMask = std::uint32_t;
constexpr int kMaxRingGpus = 16;

/// The ring bus bandwidth of every set of GPUs of a machine, in MB/s: what a collective among them
/// reaches at best.
///
/// Two GPUs: all their links, else their PCIe path. More: twice the speed of a link for each ring
/// that can be laid over the set without using a link twice (edge-disjoint Hamiltonian cycles of
/// the link multigraph); where there is none, the slowest step of the best ring that takes PCIe
/// paths too. On a switch: all links of a GPU, whatever the set. One GPU: 0.
///
/// Rings that are counted are there. All counts together take at most kRingSteps steps of search,
/// whatever the links are. Up to about 10 GPUs that is as good as no limit; of 16 that are linked
/// at random 73 to 89 % of the rings are counted that the same search finds without a limit
/// (link_rings.h).
class RingTable {
 public:
  static constexpr int kRingSteps = 700'000;

  /// REQUIRES: check(topology), at most kMaxRingGpus GPUs.
  explicit RingTable(const Topology& topology);

  [[nodiscard]] int gpus() const { return gpus_; }
  [[nodiscard]] int speed(GpuMask set) const { return speeds_[set]; }
  /// The best of all sets of so many GPUs.
  [[nodiscard]] int best(int count) const { return best_[static_cast<std::size_t>(count)]; }

 private:
  int gpus_;
  std::vector<int> speeds_;  // by mask
  std::vector<int> best_;    // by size
};

/// The same for one set on a machine of any size. Without a switch it is exact up to
/// kMaxExactRing GPUs; above, a ring is built step by step to the fastest neighbour: a speed that
/// is there, not always the best.
constexpr int kMaxExactRing = 8;
[[nodiscard]] int ring_speed(const Topology& topology, std::span<const int> gpus);

}  // namespace gflow::placement
