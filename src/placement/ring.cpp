// SPDX-License-Identifier: Apache-2.0
#include "placement/ring.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/at.h"
#include "placement/link_rings.h"

namespace gflow::placement {
namespace {

constexpr GpuMask bit(int gpu) { return GpuMask{1} << gpu; }

using Neighbours = std::vector<GpuMask>;  // of each GPU

/// For every set, whether there is a ring over it, of three and more.
class RingSets {
 public:
  /// Ends of the paths from the lowest GPU of a set through all of it, for every set from its
  /// subsets without one end.
  explicit RingSets(const Neighbours& near) : near_(near) {
    ends_.assign(std::size_t{1} << near.size(), 0);
    for (GpuMask set = 1; set < ends_.size(); ++set) {
      const GpuMask low = set & (0 - set);
      if (set == low) {
        ends_[set] = static_cast<std::uint16_t>(low);
        continue;
      }
      for (GpuMask rest = set ^ low; rest != 0; rest &= rest - 1) {
        const int end = std::countr_zero(rest);
        if ((ends_[set ^ bit(end)] & near[at(end)]) != 0) {
          ends_[set] = static_cast<std::uint16_t>(ends_[set] | bit(end));
        }
      }
    }
  }
  [[nodiscard]] bool has(GpuMask set) const {
    return std::popcount(set) > 2 && (ends_[set] & near_[at(std::countr_zero(set))]) != 0;
  }

 private:
  const Neighbours& near_;
  std::vector<std::uint16_t> ends_;
};

template <typename Joined>
Neighbours neighbours(int gpus, Joined joined) {
  Neighbours near(at(gpus));
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < gpus; ++b) {
      if (a != b && joined(a, b)) near[at(a)] |= bit(b);
    }
  }
  return near;
}

/// The speeds that pairs have, from slow to fast.
std::vector<int> speed_levels(const Topology& topology) {
  std::vector<int> levels;
  for (int a = 0; a < topology.gpus; ++a) {
    for (int b = 0; b < a; ++b) levels.push_back(topology.pair_speed(a, b));
  }
  std::ranges::sort(levels);
  levels.erase(std::ranges::unique(levels).begin(), levels.end());
  return levels;
}

LinkGraph links_of(const Topology& topology) {
  LinkGraph graph{.size = topology.gpus};
  for (int a = 0; a < graph.size; ++a) {
    for (int b = 0; b < graph.size; ++b) {
      graph.links.at(at(a)).at(at(b)) = static_cast<std::uint8_t>(topology.links_between(a, b));
    }
  }
  return graph;
}

bool all_on_switch(const Topology& topology) {
  return topology.has_switch() &&
         std::ranges::all_of(topology.switch_links, [](int links) { return links > 0; });
}

/// The smallest part of a switch that a member of the set has.
template <typename Members>
int switch_speed(const Topology& topology, const Members& members) {
  int links = kMaxLinks;
  for (const int gpu : members) links = std::min(links, topology.switch_links[at(gpu)]);
  return links * topology.speeds.link;
}

std::vector<int> members_of(GpuMask set) {
  std::vector<int> members;
  for (; set != 0; set &= set - 1) members.push_back(std::countr_zero(set));
  return members;
}

std::vector<int> mesh_speeds(const Topology& topology) {
  const int gpus = topology.gpus;
  std::vector<int> speeds(std::size_t{1} << gpus);
  for (const int level : speed_levels(topology)) {
    const Neighbours near =
        neighbours(gpus, [&](int a, int b) { return topology.pair_speed(a, b) >= level; });
    const RingSets rings(near);
    for (GpuMask set = 0; set < speeds.size(); ++set) {
      if (rings.has(set)) speeds[set] = level;
    }
  }
  const Neighbours linked =
      neighbours(gpus, [&](int a, int b) { return topology.links_between(a, b) > 0; });
  const RingSets link_rings(linked);
  std::vector<GpuMask> sets;
  for (GpuMask set = 0; set < speeds.size(); ++set) {
    if (link_rings.has(set)) sets.push_back(set);
  }
  const RingCounts counts = count_link_rings(links_of(topology), sets, RingTable::kRingSteps);
  for (std::size_t one = 0; one < sets.size(); ++one) {
    speeds[sets[one]] = 2 * topology.speeds.link * std::max(counts.rings[one], 1);
  }
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < a; ++b) speeds[bit(a) | bit(b)] = topology.pair_speed(a, b);
  }
  return speeds;
}

std::vector<int> switched_speeds(const Topology& topology) {
  std::vector<int> speeds(std::size_t{1} << topology.gpus);
  for (GpuMask set = 0; set < speeds.size(); ++set) {
    if (std::popcount(set) > 1) speeds[set] = switch_speed(topology, members_of(set));
  }
  return speeds;
}

/// The topology of some of its GPUs, renumbered from 0.
Topology part_of(const Topology& topology, std::span<const int> gpus) {
  Topology part = plain_topology(static_cast<int>(gpus.size()), PathClass::Sys);
  part.speeds = topology.speeds;
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    for (std::size_t b = 0; b < gpus.size(); ++b) {
      part.links[a * gpus.size() + b] = topology.links_between(gpus[a], gpus[b]);
      part.paths[a * gpus.size() + b] = topology.path_between(gpus[a], gpus[b]);
    }
    if (topology.has_switch()) part.switch_links.push_back(topology.switch_links[at(gpus[a])]);
  }
  return part;
}

int stepwise_speed(const Topology& topology, std::span<const int> gpus) {
  std::vector<int> open(gpus.begin() + 1, gpus.end());
  int end = gpus.front();
  int slowest = topology.pair_speed(end, open.front());
  while (!open.empty()) {
    const auto next =
        std::ranges::max_element(open, {}, [&](int gpu) { return topology.pair_speed(end, gpu); });
    slowest = std::min(slowest, topology.pair_speed(end, *next));
    end = *next;
    open.erase(next);
  }
  return std::min(slowest, topology.pair_speed(end, gpus.front()));
}

}  // namespace

RingTable::RingTable(const Topology& topology)
    : gpus_(topology.gpus),
      speeds_(all_on_switch(topology) ? switched_speeds(topology) : mesh_speeds(topology)),
      best_(at(topology.gpus) + 1) {
  for (GpuMask set = 0; set < speeds_.size(); ++set) {
    int& best = best_[at(std::popcount(set))];
    best = std::max(best, speeds_[set]);
  }
}

int ring_speed(const Topology& topology, std::span<const int> gpus) {
  if (gpus.size() < 2) return 0;
  if (gpus.size() == 2) return topology.pair_speed(gpus[0], gpus[1]);
  if (all_on_switch(topology)) return switch_speed(topology, gpus);
  if (gpus.size() > kMaxExactRing) return stepwise_speed(topology, gpus);
  const RingTable table(part_of(topology, gpus));
  return table.speed(bit(table.gpus()) - 1);
}

}  // namespace gflow::placement
