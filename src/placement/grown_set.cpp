// SPDX-License-Identifier: Apache-2.0
#include "placement/grown_set.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>

#include "base/at.h"
#include "placement/locality.h"
#include "placement/ring.h"

namespace gflow::placement {
namespace {

class Growth {
 public:
  Growth(const Topology& topology, const std::vector<int>& free)
      : topology_(topology), open_(free), speed_(free.size()), distance_(free.size()) {}

  [[nodiscard]] std::vector<int> from(std::size_t seed, int count) {
    take(seed);
    while (static_cast<int>(set_.size()) < count) take(next());
    std::ranges::sort(set_);
    return set_;
  }

 private:
  [[nodiscard]] std::size_t next() const {
    std::size_t best = 0;
    for (std::size_t one = 1; one < open_.size(); ++one) {
      if (std::tuple(-speed_[one], distance_[one]) < std::tuple(-speed_[best], distance_[best])) {
        best = one;
      }
    }
    return best;
  }

  void take(std::size_t which) {
    const int gpu = open_[which];
    const auto position = static_cast<std::ptrdiff_t>(which);
    open_.erase(open_.begin() + position);
    speed_.erase(speed_.begin() + position);
    distance_.erase(distance_.begin() + position);
    set_.push_back(gpu);
    for (std::size_t one = 0; one < open_.size(); ++one) {
      const std::array<int, 2> pair = {gpu, open_[one]};
      speed_[one] += topology_.pair_speed(gpu, open_[one]);
      distance_[one] += distance_of(topology_, pair);
    }
  }

  const Topology& topology_;
  std::vector<int> set_;
  std::vector<int> open_;               // ascending: the first of equals has the lowest index
  std::vector<std::int64_t> speed_;     // to the set, by position in open_
  std::vector<std::int64_t> distance_;  // the same
};

/// Free GPUs that stay behind on the NUMA nodes of the set.
int left_on_nodes(const Topology& topology,
                  const std::vector<int>& free,
                  const std::vector<int>& set) {
  std::vector<int> touched;
  for (const int gpu : set) touched.push_back(topology.numa[at(gpu)].value_or(-1));
  const auto on_them = std::ranges::count_if(free, [&](int gpu) {
    return std::ranges::find(touched, topology.numa[at(gpu)].value_or(-1)) != touched.end();
  });
  return static_cast<int>(on_them) - static_cast<int>(set.size());
}

}  // namespace

std::vector<int> grown_set(const Topology& topology, const std::vector<int>& free, int count) {
  std::vector<int> best;
  std::tuple<int, int, int, int> best_rank;
  for (std::size_t seed = 0; seed < free.size(); ++seed) {
    std::vector<int> set = Growth(topology, free).from(seed, count);
    const std::tuple rank(-ring_speed(topology, set),
                          numa_nodes_of(topology, set),
                          left_on_nodes(topology, free, set),
                          distance_of(topology, set));
    if (best.empty() || rank < best_rank || (rank == best_rank && set < best)) {
      best = std::move(set);
      best_rank = rank;
    }
  }
  return best;
}

}  // namespace gflow::placement
