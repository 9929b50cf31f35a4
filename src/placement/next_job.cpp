// SPDX-License-Identifier: Apache-2.0
#include "placement/next_job.h"
#include "base/at.h"

#include <algorithm>
#include <bit>

namespace gflow::placement {
namespace {}  // namespace

NextJob::NextJob(const Prospects& prospects) : gpus_(prospects.gpus) {
  const std::size_t row = at(gpus_) + 1;
  const std::size_t sets = std::size_t{1} << gpus_;
  // First the share of the best set of each size within each set: its own, or one within a part.
  gains_.assign(sets * row, 0.0F);
  for (GpuMask set = 1; set < sets; ++set) {
    float* mine = &gains_[set * row];
    for (GpuMask rest = set; rest != 0; rest &= rest - 1) {
      const float* part = &gains_[(set & ~(rest & (0 - rest))) * row];
      for (std::size_t size = 2; size < row; ++size) mine[size] = std::max(mine[size], part[size]);
    }
    mine[at(std::popcount(set))] = static_cast<float>(prospects.shares[set]);
  }
  for (GpuMask set = 0; set < sets; ++set) {
    float sum = 0;
    for (std::size_t size = 2; size < row; ++size) {
      sum += gains_[set * row + size] * static_cast<float>(prospects.chances[size]);
      gains_[set * row + size] = sum;
    }
  }
}

double NextJob::gain(GpuMask free, int from) const {
  const std::size_t row = free * (at(gpus_) + 1);
  return gains_[row + at(std::popcount(free))] - gains_[row + at(from)];
}

double NextJob::after_one(const Division& division, GpuMask free, int ended) const {
  const GpuMask more = free | division.held.at(at(ended));
  double sum = 0;
  for (int other = 0; other < division.jobs; ++other) {
    if (other != ended) sum += gain(more | division.held.at(at(other)), std::popcount(more));
  }
  return gain(more, std::popcount(free)) + sum / std::max(division.jobs - 1, 1);
}

double NextJob::expects(const Division& division) const {
  GpuMask free = (GpuMask{1} << gpus_) - 1;
  for (const GpuMask held : division.blocks()) free &= ~held;
  double sum = 0;
  for (int ended = 0; ended < division.jobs; ++ended) sum += after_one(division, free, ended);
  return gain(free, 0) + sum / std::max(division.jobs, 1);
}

}  // namespace gflow::placement
