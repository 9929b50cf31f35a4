// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "placement/division.h"

namespace gflow::placement {

/// What the job that comes next is expected to get in a division of a machine: the share of the
/// best set of its size among the free GPUs if they are enough, else after one or two of the
/// running jobs have ended, each as likely as the others.
class NextJob {
 public:
  explicit NextJob(const Prospects& prospects);

  [[nodiscard]] double expects(const Division& division) const;

 private:
  /// What sizes above `from` and up to the size of `free` add: chance times share.
  [[nodiscard]] double gain(GpuMask free, int from) const;
  [[nodiscard]] double after_one(const Division& division, GpuMask free, int ended) const;

  int gpus_;
  std::vector<float> gains_;  // by mask, then size: of all sizes up to it
};

}  // namespace gflow::placement
