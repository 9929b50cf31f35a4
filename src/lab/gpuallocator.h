// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "placement/ring.h"

namespace gflow::lab {

using placement::GpuMask;

/// What others choose GPUs by, to be compared with: the "best effort" policy of NVIDIA's
/// go-gpuallocator (Apache-2.0; the Kubernetes device plugin uses it), after its description. A
/// pair is worth 10 (SYS), 20 (NODE), 30 (PHB), 40 (PXB) or 50 (PIX), and 100 for each direct link;
/// links to a switch are not seen. All ways to part the free GPUs into sets of the wanted size are
/// tried, one set being short where the number does not fit; of the way worth most in all, the set
/// worth most is taken. The cost grows faster than exponentially: 16 GPUs take seconds.
class GpuAllocator {
 public:
  /// REQUIRES: at most placement::kMaxRingGpus GPUs.
  explicit GpuAllocator(const Topology& topology);

  [[nodiscard]] GpuMask choose(GpuMask free, int count) const;
  /// The sum over the pairs of a set.
  [[nodiscard]] int worth(GpuMask set) const { return worth_[set]; }

 private:
  std::vector<int> worth_;  // by mask
};

/// The same choices, each worked out once.
class RememberedAllocator {
 public:
  explicit RememberedAllocator(const Topology& topology) : allocator_(topology) {}
  [[nodiscard]] GpuMask choose(GpuMask free, int count);

 private:
  GpuAllocator allocator_;
  std::map<std::pair<GpuMask, int>, GpuMask> known_;
};

}  // namespace gflow::lab
