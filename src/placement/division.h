// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "placement/ring.h"

namespace gflow::placement {

/// How the GPUs of a machine are divided among jobs.
struct Division {
  std::array<GpuMask, kMaxRingGpus> held{};  ///< by each job, disjoint and not empty
  int jobs = 0;

  [[nodiscard]] std::span<const GpuMask> blocks() const {
    return std::span(held).first(static_cast<std::size_t>(jobs));
  }
  void add(GpuMask set) { held.at(static_cast<std::size_t>(jobs++)) = set; }
};

/// What later jobs may be worth: a share of the best possible, 0 to 1, of every set, and how often
/// a job of each size comes. Sets of one GPU are worth nothing: whatever they are, they are as
/// good.
struct Prospects {
  int gpus = 0;
  std::vector<double> shares;   ///< by mask
  std::vector<double> chances;  ///< by size up to `gpus`; their sum is 1
};

}  // namespace gflow::placement
