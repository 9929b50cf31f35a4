// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "placement/device_set.h"
#include "placement/division.h"
#include "placement/division_values.h"
#include "placement/next_job.h"
#include "placement/ring.h"

namespace gflow::placement {

/// The choice among all sets of a machine with at most kMaxRingGpus GPUs; the order is that of
/// DeviceTable.
class SmallMachine {
 public:
  /// REQUIRES: 1 to kMaxRingGpus GPUs.
  SmallMachine(const Topology& topology, const DemandProfile& profile);

  /// REQUIRES: 1 <= count <= popcount(free); `held` are disjoint sets, together all that is not
  /// free.
  [[nodiscard]] GpuMask choose(GpuMask free, int count, const Division& held) const;
  [[nodiscard]] const RingTable& rings() const { return rings_; }
  /// The best of the sets of so many GPUs within `free`; 0 if there is none.
  [[nodiscard]] int best_within(GpuMask free, int count) const;

 private:
  [[nodiscard]] Prospects prospects_of(const DemandProfile& profile) const;
  [[nodiscard]] std::span<const GpuMask> sets_of(int count) const;
  [[nodiscard]] bool as_good(GpuMask a, GpuMask b) const;
  [[nodiscard]] double value_of(const Division& division) const;
  void sort_sets();

  int gpus_;
  RingTable rings_;
  std::vector<int> distances_;       // by mask
  bool by_distance_;                 // every set of a size has the same speed
  bool all_alike_;                   // and the same distance
  std::vector<GpuMask> sets_;        // by size, then from good to bad
  std::vector<std::size_t> firsts_;  // in sets_, by size
  std::optional<DivisionValues> values_;
  std::optional<NextJob> next_job_;
};

}  // namespace gflow::placement
