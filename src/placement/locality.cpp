// SPDX-License-Identifier: Apache-2.0
#include "placement/locality.h"

#include <algorithm>
#include <array>
#include <vector>

namespace gflow::placement {
namespace {

constexpr std::array<int, kPathClasses> kPathDistance = {0, 10, 20, 30, 40, 60};
constexpr int kNodeDistance = 1000;  // above any path

}  // namespace

int numa_nodes_of(const Topology& topology, std::span<const int> gpus) {
  std::vector<int> nodes;
  for (const int gpu : gpus) {
    const auto node = topology.numa[static_cast<std::size_t>(gpu)];
    if (node) nodes.push_back(*node);
  }
  std::ranges::sort(nodes);
  return static_cast<int>(std::ranges::unique(nodes).begin() - nodes.begin());
}

int distance_of(const Topology& topology, std::span<const int> gpus) {
  int paths = 0;
  int pairs = 0;
  for (const int a : gpus) {
    for (const int b : gpus) {
      if (b <= a) continue;
      paths += kPathDistance.at(static_cast<std::size_t>(topology.path_between(a, b)));
      ++pairs;
    }
  }
  return std::max(numa_nodes_of(topology, gpus), 1) * kNodeDistance + paths / std::max(pairs, 1);
}

}  // namespace gflow::placement
