// SPDX-License-Identifier: Apache-2.0
#include "placement/division_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace gflow::placement {
namespace {

constexpr int kMostSweeps = 200;
constexpr double kStill = 1e-4;  // shares: far below what two sets differ by

constexpr std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// The blocks of a division from large to small mask, a byte each: one number for each division.
std::uint64_t code_of(std::span<const GpuMask> blocks) {
  std::array<GpuMask, DivisionValues::kMostGpus> sorted{};
  std::ranges::copy(blocks, sorted.begin());
  std::ranges::sort(sorted, std::greater{});
  std::uint64_t code = 0;
  for (const GpuMask block : sorted) code = code << 8 | block;
  return code;
}

std::vector<GpuMask> blocks_of(std::uint64_t code) {
  std::vector<GpuMask> blocks;
  for (; code != 0; code >>= 8) {
    if ((code & 0xFF) != 0) blocks.push_back(static_cast<GpuMask>(code & 0xFF));
  }
  return blocks;
}

GpuMask union_of(std::span<const GpuMask> blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), GpuMask{0}, std::bit_or{});
}

/// Every way to divide GPUs `gpu` and above among `blocks`, new blocks and none.
void divide(int gpu, int gpus, std::vector<GpuMask>& blocks, std::vector<std::uint64_t>& codes) {
  if (gpu == gpus) {
    codes.push_back(code_of(blocks));
    return;
  }
  const GpuMask one = GpuMask{1} << gpu;
  divide(gpu + 1, gpus, blocks, codes);
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    blocks[block] |= one;
    divide(gpu + 1, gpus, blocks, codes);
    blocks[block] &= ~one;
  }
  blocks.push_back(one);
  divide(gpu + 1, gpus, blocks, codes);
  blocks.pop_back();
}

/// The process: divisions, and which follow each other.
class Process {
 public:
  Process(const Prospects& prospects, const std::vector<std::uint64_t>& codes)
      : prospects_(prospects), codes_(codes) {
    for (std::size_t division = 0; division < codes.size(); ++division) note(division);
    first_start_.push_back(starts_.size());
    first_end_.push_back(ends_.size());
    std::ranges::stable_sort(by_jobs_, {}, [&](std::uint32_t division) {
      return first_end_[division + 1] - first_end_[division];
    });
  }

  std::vector<double> solve() {
    std::vector<double> values(codes_.size(), 0.0);
    const std::uint32_t idle = by_jobs_.front();
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      std::vector<double> next(codes_.size(), 0.0);
      for (int size = 1; size <= prospects_.gpus; ++size) {
        const double chance = prospects_.chances[at(size)];
        if (chance <= 0) continue;
        const std::vector<double> with = with_waiting(size, values);
        for (std::size_t one = 0; one < next.size(); ++one) next[one] += chance * with[one];
      }
      double moved = 0;
      const double base = next[idle];
      for (std::size_t one = 0; one < next.size(); ++one) {
        next[one] -= base;
        moved = std::max(moved, std::abs(next[one] - values[one]));
      }
      values.swap(next);
      if (moved < kStill) break;
    }
    return values;
  }

 private:
  struct Start {
    std::uint32_t becomes;
    GpuMask set;
  };

  [[nodiscard]] std::uint32_t find(std::span<const GpuMask> blocks) const {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(codes_, code_of(blocks)) -
                                      codes_.begin());
  }

  void note(std::size_t division) {
    std::vector<GpuMask> blocks = blocks_of(codes_[division]);
    const GpuMask free = ((GpuMask{1} << prospects_.gpus) - 1) & ~union_of(blocks);
    by_jobs_.push_back(static_cast<std::uint32_t>(division));
    free_.push_back(std::popcount(free));
    first_end_.push_back(ends_.size());
    for (std::size_t one = 0; one < blocks.size(); ++one) {
      std::vector<GpuMask> rest = blocks;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(one));
      ends_.push_back(find(rest));
    }
    first_start_.push_back(starts_.size());
    for (GpuMask set = free; set != 0; set = (set - 1) & free) {
      if (prospects_.chances[at(std::popcount(set))] <= 0) continue;
      blocks.push_back(set);
      starts_.push_back({find(blocks), set});
      blocks.pop_back();
    }
  }

  /// The value of each division with a job of this size waiting. Divisions with fewer jobs first:
  /// an end leads to one of them.
  [[nodiscard]] std::vector<double> with_waiting(int size,
                                                 const std::vector<double>& values) const {
    std::vector<double> with(codes_.size(), 0.0);
    for (const std::uint32_t division : by_jobs_) {
      if (free_[division] < size) {
        double sum = 0;
        for (std::size_t end = first_end_[division]; end < first_end_[division + 1]; ++end) {
          sum += with[ends_[end]];
        }
        with[division] = sum / static_cast<double>(first_end_[division + 1] - first_end_[division]);
        continue;
      }
      double best = -1e300;
      for (std::size_t i = first_start_[division]; i < first_start_[division + 1]; ++i) {
        const Start& start = starts_[i];
        if (std::popcount(start.set) != size) continue;
        best = std::max(best, prospects_.shares[start.set] + values[start.becomes]);
      }
      with[division] = best;
    }
    return with;
  }

  const Prospects& prospects_;
  const std::vector<std::uint64_t>& codes_;
  std::vector<std::uint32_t> by_jobs_;
  std::vector<int> free_;
  std::vector<std::size_t> first_start_;
  std::vector<Start> starts_;
  std::vector<std::size_t> first_end_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace

DivisionValues::DivisionValues(const Prospects& prospects) {
  std::vector<GpuMask> blocks;
  divide(0, prospects.gpus, blocks, codes_);
  std::ranges::sort(codes_);
  values_ = Process(prospects, codes_).solve();
}

double DivisionValues::of(const Division& division) const {
  const auto found = std::ranges::lower_bound(codes_, code_of(division.blocks()));
  return values_[static_cast<std::size_t>(found - codes_.begin())];
}

}  // namespace gflow::placement
