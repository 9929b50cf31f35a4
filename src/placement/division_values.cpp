// SPDX-License-Identifier: Apache-2.0
#include "placement/division_values.h"
#include "base/at.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace gflow::placement {
namespace {

// After so many sweeps no choice on any machine of the tests differs from that after 200 in worth.
constexpr int kSweeps = 12;

constexpr int kTop = 56;  // the shift of the highest byte

/// The code with one block more, of a division without it: bytes stay in order.
constexpr std::uint64_t with_block(std::uint64_t code, GpuMask block) {
  int shift = kTop;
  while ((code >> shift & 0xFF) > block) shift -= 8;
  const std::uint64_t above = shift == kTop ? 0 : code >> (shift + 8) << (shift + 8);
  const std::uint64_t below = code & ~above;
  return above | std::uint64_t{block} << shift | below >> 8;
}

/// The code without the block in the byte at `shift`.
constexpr std::uint64_t without_block(std::uint64_t code, int shift) {
  const std::uint64_t below = code & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t above = shift == kTop ? 0 : code >> (shift + 8) << (shift + 8);
  return above | below << 8;
}

std::uint64_t code_of(std::span<const GpuMask> blocks) {
  std::uint64_t code = 0;
  for (const GpuMask block : blocks) code = with_block(code, block);
  return code;
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
  Process(const Prospects& prospects, const DivisionIndex& index)
      : prospects_(prospects), index_(index) {
    for (std::uint32_t division = 0; division < index.size(); ++division) note(division);
    first_start_.push_back(starts_.size());
    first_end_.push_back(ends_.size());
    by_jobs_.resize(index.size());
    std::iota(by_jobs_.begin(), by_jobs_.end(), 0U);
    std::ranges::stable_sort(by_jobs_, {}, [&](std::uint32_t division) {
      return first_end_[division + 1] - first_end_[division];
    });
  }

  std::vector<double> solve() {
    std::vector<double> values(index_.size(), 0.0);
    std::vector<double> next(index_.size(), 0.0);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      std::ranges::fill(next, 0.0);
      for (int size = 1; size <= prospects_.gpus; ++size) {
        const double chance = prospects_.chances[at(size)];
        if (chance <= 0) continue;
        const std::vector<double> with = with_waiting(size, values);
        for (std::size_t one = 0; one < next.size(); ++one) next[one] += chance * with[one];
      }
      const double base = next[by_jobs_.front()];  // the idle machine
      for (double& value : next) value -= base;
      values.swap(next);
    }
    return values;
  }

 private:
  struct Start {
    std::uint32_t becomes;
    GpuMask set;
  };

  void note(std::uint32_t division) {
    const std::uint64_t code = index_.code(division);
    GpuMask free = (GpuMask{1} << prospects_.gpus) - 1;
    first_end_.push_back(ends_.size());
    for (int shift = kTop; shift >= 0 && (code >> shift & 0xFF) != 0; shift -= 8) {
      free &= ~static_cast<GpuMask>(code >> shift & 0xFF);
      ends_.push_back(index_.find(without_block(code, shift)));
    }
    free_.push_back(std::popcount(free));
    first_start_.push_back(starts_.size());
    for (GpuMask set = free; set != 0; set = (set - 1) & free) {
      if (prospects_.chances[at(std::popcount(set))] <= 0) continue;
      starts_.push_back({index_.find(with_block(code, set)), set});
    }
    std::ranges::stable_sort(starts_.begin() + static_cast<std::ptrdiff_t>(first_start_.back()),
                             starts_.end(),
                             {},
                             [](const Start& start) { return std::popcount(start.set); });
  }

  /// The starts of jobs of one size, which stand together.
  [[nodiscard]] std::span<const Start> starts(std::uint32_t division, int size) const {
    const auto all = std::span(starts_).subspan(
        first_start_[division], first_start_[division + 1] - first_start_[division]);
    const auto found = std::ranges::equal_range(
        all, size, {}, [](const Start& start) { return std::popcount(start.set); });
    return {found.begin(), found.end()};
  }

  /// The value of each division with a job of this size waiting. Divisions with fewer jobs first:
  /// an end leads to one of them.
  [[nodiscard]] std::vector<double> with_waiting(int size,
                                                 const std::vector<double>& values) const {
    std::vector<double> with(index_.size(), 0.0);
    for (const std::uint32_t division : by_jobs_) {
      if (free_[division] < size) {
        double sum = 0;
        for (std::size_t end = first_end_[division]; end < first_end_[division + 1]; ++end) {
          sum += with[ends_[end]];
        }
        with[division] = sum / static_cast<double>(first_end_[division + 1] - first_end_[division]);
        continue;
      }
      double best = std::numeric_limits<double>::lowest();
      for (const Start& start : starts(division, size)) {
        best = std::max(best, prospects_.shares[start.set] + values[start.becomes]);
      }
      with[division] = best;
    }
    return with;
  }

  const Prospects& prospects_;
  const DivisionIndex& index_;
  std::vector<std::uint32_t> by_jobs_;
  std::vector<int> free_;
  std::vector<std::size_t> first_start_;
  std::vector<Start> starts_;
  std::vector<std::size_t> first_end_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace

DivisionIndex::DivisionIndex(int gpus) {
  std::vector<GpuMask> blocks;
  divide(0, gpus, blocks, codes_);
  slots_.assign(std::bit_ceil(codes_.size() * 2), kNone);
  for (std::uint32_t division = 0; division < codes_.size(); ++division) {
    std::size_t slot = slot_of(codes_[division]);
    while (slots_[slot] != kNone) slot = (slot + 1) % slots_.size();
    slots_[slot] = division;
  }
}

std::size_t DivisionIndex::slot_of(std::uint64_t code) const {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio
  const int bits = std::countr_zero(slots_.size());
  return bits == 0 ? 0 : static_cast<std::size_t>(code * kGolden >> (64 - bits));  // the high bits
}

std::uint32_t DivisionIndex::find(std::uint64_t code) const {
  std::size_t slot = slot_of(code);
  while (codes_[slots_[slot]] != code) slot = (slot + 1) % slots_.size();
  return slots_[slot];
}

DivisionValues::DivisionValues(const Prospects& prospects)
    : index_(prospects.gpus), values_(Process(prospects, index_).solve()) {}

double DivisionValues::of(const Division& division) const {
  return values_[index_.find(code_of(division.blocks()))];
}

}  // namespace gflow::placement
