// SPDX-License-Identifier: Apache-2.0
#include "placement/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <random>

#include "base/at.h"
#include "placement/link_rings.h"

namespace gflow::placement {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

/// Every Hamiltonian cycle of so many vertices.
std::vector<Pairs> all_cycles(int vertices) {
  std::vector<int> order(at(vertices) - 1);
  std::iota(order.begin(), order.end(), 1);
  std::vector<Pairs> cycles;
  do {
    if (order.front() > order.back()) continue;
    Pairs cycle;
    int end = 0;
    for (const int next : order) {
      cycle.emplace_back(end, next);
      end = next;
    }
    cycle.emplace_back(end, 0);
    cycles.push_back(std::move(cycle));
  } while (std::ranges::next_permutation(order).found);
  return cycles;
}

/// The definition, by trying everything.
int max_rings(LinkGraph& graph, const std::vector<Pairs>& cycles, std::size_t from) {
  int most = 0;
  for (std::size_t one = from; one < cycles.size(); ++one) {
    const auto has = [&](const auto& pair) {
      return graph.links.at(at(pair.first)).at(at(pair.second)) > 0;
    };
    if (!std::ranges::all_of(cycles[one], has)) continue;
    const auto change = [&](int by) {
      for (const auto& [a, b] : cycles[one]) {
        for (auto* links : {&graph.links.at(at(a)).at(at(b)), &graph.links.at(at(b)).at(at(a))}) {
          *links = static_cast<std::uint8_t>(*links + by);
        }
      }
    };
    change(-1);
    most = std::max(most, 1 + max_rings(graph, cycles, one));
    change(+1);
  }
  return most;
}

/// Every set of three and more.
std::vector<GpuMask> all_sets(int vertices) {
  std::vector<GpuMask> sets;
  for (GpuMask set = 0; set < GpuMask{1} << vertices; ++set) {
    if (std::popcount(set) > 2) sets.push_back(set);
  }
  return sets;
}

/// Of all vertices together.
int rings_of(const LinkGraph& graph) {
  return count_link_rings(graph, all_sets(graph.size), RingTable::kRingSteps).rings.back();
}

/// Linked at random, in one of four ways: half of the pairs, most, few, nearly all.
LinkGraph random_graph(unsigned seed, int vertices) {
  std::mt19937 random(seed);
  LinkGraph graph{.size = vertices};
  for (int a = 0; a < vertices; ++a) {
    for (int b = 0; b < a; ++b) {
      unsigned long links = 0;
      if (seed % 4 == 0) links = random() % 2 != 0 ? 1 + random() % 4 : 0;
      if (seed % 4 == 1) links = random() % 5;
      if (seed % 4 == 2) links = random() % 4 != 0 ? 0 : 1 + random() % 2;
      if (seed % 4 == 3) links = random() % 10 != 0 ? 1 + random() % 6 : 0;
      graph.links.at(at(a)).at(at(b)) = static_cast<std::uint8_t>(links);
      graph.links.at(at(b)).at(at(a)) = static_cast<std::uint8_t>(links);
    }
  }
  return graph;
}

TEST(LinkRings, AreAsManyAsALongSearchFinds) {
  // What a search of 200,000 steps for each number of each set found, from an upper bound downward:
  // all rings of all sets together.
  const std::array<int, 60> kFound = {0, 9, 0, 49, 7,  484, 1, 5039, 1, 6, 0, 91, 26, 449, 21, 3531,
                                      2, 1, 0, 45, 33, 619, 2, 4012, 0, 4, 0, 78, 3,  320, 1,  3351,
                                      0, 2, 0, 71, 13, 277, 0, 3713, 0, 4, 0, 80, 65, 237, 12, 2274,
                                      0, 4, 0, 33, 77, 501, 3, 3890, 0, 0, 0, 168};
  for (unsigned seed = 0; seed < kFound.size(); ++seed) {
    const int vertices = 3 + static_cast<int>(seed % 8);
    const RingCounts counts =
        count_link_rings(random_graph(seed, vertices), all_sets(vertices), RingTable::kRingSteps);
    EXPECT_GE(std::reduce(counts.rings.begin(), counts.rings.end()), kFound.at(seed)) << seed;
  }
}

TEST(LinkRings, TakeNoMoreStepsThanTheyAreGiven) {
  for (const int vertices : {14, 15, 16}) {
    const std::vector<GpuMask> sets = all_sets(vertices);
    for (unsigned seed = 0; seed < 4; ++seed) {
      const LinkGraph graph = random_graph(seed, vertices);
      const auto total = [&](std::int64_t steps) {
        const RingCounts counts = count_link_rings(graph, sets, steps);
        EXPECT_LE(counts.steps, steps) << vertices << " " << seed;
        return std::reduce(counts.rings.begin(), counts.rings.end());
      };
      const int most = total(RingTable::kRingSteps);
      const int few = total(1000);
      EXPECT_GE(most, few) << vertices << " " << seed;
      const bool finds_all = seed == 2;  // there are few links
      EXPECT_TRUE(finds_all || most > few) << vertices << " " << seed;
    }
  }
}

TEST(LinkRings, AreKeptWithinBoundsWhereLinksAreMany) {
  LinkGraph graph{.size = 16};
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < a; ++b) {
      graph.links.at(at(a)).at(at(b)) = graph.links.at(at(b)).at(at(a)) =
          static_cast<std::uint8_t>(17 + (a + b) % 2);
    }
  }
  // Seven rings over all, 17 times.
  EXPECT_GE(rings_of(graph), 119);
}

TEST(LinkRings, AreAsManyAsTryingEverythingFinds) {
  std::mt19937 random(7);
  for (int vertices = 3; vertices <= 7; ++vertices) {
    const std::vector<Pairs> cycles = all_cycles(vertices);
    for (int round = 0; round < 60; ++round) {
      LinkGraph graph{.size = vertices};
      const unsigned most = round % 2 == 0 || vertices == 7 ? 1 : 2;
      const unsigned density = 4 + static_cast<unsigned>(round) % 6;
      for (int a = 0; a < vertices; ++a) {
        for (int b = 0; b < a; ++b) {
          const auto links = random() % 10 < density ? 1 + random() % most : 0;
          graph.links.at(at(a)).at(at(b)) = static_cast<std::uint8_t>(links);
          graph.links.at(at(b)).at(at(a)) = static_cast<std::uint8_t>(links);
        }
      }
      const int found = rings_of(graph);
      EXPECT_EQ(found, max_rings(graph, cycles, 0)) << vertices << " vertices, round " << round;
    }
  }
}

TEST(LinkRings, FillAFullGraph) {
  for (int vertices = 3; vertices <= 16; ++vertices) {
    for (const int links : {1, 2, 6}) {
      LinkGraph graph{.size = vertices};
      for (int a = 0; a < vertices; ++a) {
        for (int b = 0; b < vertices; ++b) {
          if (a != b) graph.links.at(at(a)).at(at(b)) = static_cast<std::uint8_t>(links);
        }
      }
      // Walecki: a complete graph parts into rings, and one perfect matching if it is even.
      const int single = (vertices - 1) / 2;
      const int found = rings_of(graph);
      EXPECT_GE(found, links * single) << vertices << " x " << links;
      EXPECT_LE(found, links * (vertices - 1) / 2) << vertices << " x " << links;
    }
  }
}

Topology pairs_linked(int gpus, const std::vector<std::array<int, 3>>& links) {
  Topology topology = plain_topology(gpus, PathClass::Sys);
  topology.speeds = {.link = 20'000, .path = {0, 12'000, 12'000, 12'000, 9'000, 9'000}};
  for (const auto& [a, b, count] : links) {
    topology.links[at(a * gpus + b)] = count;
    topology.links[at(b * gpus + a)] = count;
  }
  return topology;
}

TEST(Ring, FollowsTheDefinition) {
  const Topology square = pairs_linked(5, {{0, 1, 2}, {1, 2, 2}, {2, 3, 2}, {3, 0, 2}, {0, 2, 1}});
  const RingTable table(square);
  const struct {
    GpuMask set;
    int speed;
  } cases[] = {
      {0b00001, 0},       // one GPU
      {0b00011, 40'000},  // two links
      {0b01010, 9'000},   // none: the PCIe path
      {0b00111, 40'000},  // one ring, both directions
      {0b01111, 80'000},  // two rings
      {0b11111, 9'000},   // no ring of links: its slowest step
      {0b10011, 9'000},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(table.speed(one.set), one.speed) << one.set;
    std::vector<int> members;
    for (GpuMask rest = one.set; rest != 0; rest &= rest - 1) {
      members.push_back(std::countr_zero(rest));
    }
    EXPECT_EQ(ring_speed(square, members), one.speed) << one.set;
  }
  EXPECT_EQ(table.best(3), 40'000);
  EXPECT_EQ(table.best(4), 80'000);
}

TEST(Ring, OfASwitchHasAllLinksOfAGpu) {
  Topology topology = plain_topology(4, PathClass::Node);
  topology.speeds.link = 20'600;
  topology.switch_links = {18, 18, 18, 16};  // one GPU lost two
  const RingTable table(topology);
  EXPECT_EQ(table.speed(0b0011), 370'800);
  EXPECT_EQ(table.speed(0b0111), 370'800);
  EXPECT_EQ(table.speed(0b1111), 329'600);
  EXPECT_EQ(ring_speed(topology, std::array{0, 3}), 329'600);
}

TEST(Ring, OfManyGpusIsOneThatIsThere) {
  // 20 GPUs in a ring of links: the way round is found, a set that leaves some out has PCIe steps.
  std::vector<std::array<int, 3>> links;
  for (int gpu = 0; gpu < 20; ++gpu) links.push_back({gpu, (gpu + 1) % 20, 1});
  const Topology topology = pairs_linked(20, links);
  std::vector<int> all(20);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(ring_speed(topology, all), 20'000);
  EXPECT_EQ(ring_speed(topology, std::span(all).first(10)), 9'000);
}

}  // namespace
}  // namespace gflow::placement
