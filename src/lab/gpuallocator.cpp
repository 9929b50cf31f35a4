// SPDX-License-Identifier: Apache-2.0
#include "lab/gpuallocator.h"

#include <array>
#include <bit>

namespace gflow::lab {
namespace {

constexpr std::array<int, kPathClasses> kPathWorth = {0, 50, 40, 30, 20, 10};
constexpr int kLinkWorth = 100;

int pair_worth(const Topology& topology, int a, int b) {
  return kPathWorth.at(static_cast<std::size_t>(topology.path_between(a, b))) +
         kLinkWorth * topology.links_between(a, b);
}

/// Tries all partitions, depth first: the lowest free GPU is in the next set.
class Partitions {
 public:
  Partitions(const GpuAllocator& allocator, int count) : allocator_(allocator), count_(count) {}

  void part(GpuMask open, int missing, int worth) {
    if (open == 0) {
      if (worth > best_worth_) {
        best_worth_ = worth;
        best_ = sets_;
      }
      return;
    }
    const GpuMask lowest = open & (0 - open);
    complete(lowest, open & ~lowest, count_ - 1, {open, missing, worth});
    // The set that is short by all that is missing.
    if (missing > 0 && missing < count_) {
      complete(lowest, open & ~lowest, count_ - 1 - missing, {open, 0, worth});
    }
  }

  /// Of the best partition the best set that is not short.
  [[nodiscard]] GpuMask best_set() const {
    GpuMask best = 0;
    for (const GpuMask set : best_) {
      if (std::popcount(set) != count_) continue;
      if (best == 0 || allocator_.worth(set) > allocator_.worth(best)) best = set;
    }
    return best;
  }

 private:
  struct Rest {
    GpuMask open;
    int missing;
    int worth;
  };

  /// Adds `more` of the candidates to the set in every way, lowest first.
  void complete(GpuMask set, GpuMask candidates, int more, const Rest& rest) {
    if (more == 0) {
      sets_.push_back(set);
      part(rest.open & ~set, rest.missing, rest.worth + allocator_.worth(set));
      sets_.pop_back();
      return;
    }
    while (std::popcount(candidates) >= more) {
      const GpuMask next = candidates & (0 - candidates);
      candidates &= ~next;
      complete(set | next, candidates, more - 1, rest);
    }
  }

  const GpuAllocator& allocator_;
  int count_;
  std::vector<GpuMask> sets_;
  std::vector<GpuMask> best_;
  int best_worth_ = -1;
};

}  // namespace

GpuAllocator::GpuAllocator(const Topology& topology) {
  worth_.assign(std::size_t{1} << topology.gpus, 0);
  for (GpuMask set = 1; set < worth_.size(); ++set) {
    const int first = std::countr_zero(set);
    const GpuMask others = set & (set - 1);
    worth_[set] = worth_[others];
    for (GpuMask rest = others; rest != 0; rest &= rest - 1) {
      worth_[set] += pair_worth(topology, first, std::countr_zero(rest));
    }
  }
}

GpuMask GpuAllocator::choose(GpuMask free, int count) const {
  const int over = std::popcount(free) % count;
  Partitions partitions(*this, count);
  partitions.part(free, over == 0 ? 0 : count - over, 0);
  return partitions.best_set();
}

GpuMask RememberedAllocator::choose(GpuMask free, int count) {
  const auto known = known_.find({free, count});
  if (known != known_.end()) return known->second;
  const GpuMask set = allocator_.choose(free, count);
  known_.emplace(std::pair(free, count), set);
  return set;
}

}  // namespace gflow::lab
