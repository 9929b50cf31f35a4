// SPDX-License-Identifier: Apache-2.0
#include "placement/device_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>

#include "base/at.h"
#include "placement/division_values.h"

namespace gflow::placement {
namespace {

std::string fixture(const std::string& name) {
  std::ifstream file(std::string(GFLOW_SOURCE_DIR) + "/tests/fixtures/topology/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A machine of topo_matrices.txt.
Topology machine(const std::string& name, const std::string& model) {
  const std::string text = fixture("topo_matrices.txt");
  const std::size_t from = text.find("# " + name + " ");
  return parse_topology(text.substr(from, text.find("\n# ", from) - from), speeds_of_model(model))
      .value();
}

DeviceSet set_of(const std::vector<int>& gpus) {
  DeviceSet set;
  for (const int gpu : gpus) set.set(at(gpu));
  return set;
}

std::vector<int> chosen(const DeviceTable& table,
                        const std::vector<int>& free,
                        int count,
                        const std::vector<DeviceSet>& held = {}) {
  return table.choose({set_of(free), count, held}).devices;
}

using Gpus = std::vector<int>;

TEST(DeviceTable, TakesTheBestRingOfADgx1) {
  const DeviceTable table(8, machine("dgx1-v100", "V100"), DemandProfile::usual());
  const struct {
    Gpus free;
    int count;
    Gpus expected;
  } cases[] = {
      {{0, 3, 1}, 2, {0, 3}},              // two links, not one
      {{0, 1, 4}, 2, {0, 4}},              // across sockets, but two links
      {{0, 4, 5, 6}, 2, {5, 6}},           // the pairs with two links leave {0,4} or {4,5}
      {{0, 1, 2, 3, 5}, 4, {0, 1, 2, 3}},  // a quad
      {{1, 2, 3, 4, 5, 6, 7}, 4, {4, 5, 6, 7}},
      {{0, 1, 2, 3, 4}, 1, {4}},  // does not break a quad
      {{2}, 1, {2}},
      {{0, 1, 2, 3, 4, 5, 6, 7}, 8, {0, 1, 2, 3, 4, 5, 6, 7}},
      {{1, 2}, 0, {}},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(chosen(table, one.free, one.count), one.expected)
        << one.count << " of " << one.free.size();
  }
}

TEST(DeviceTable, SaysWhy) {
  const DeviceTable table(8, machine("dgx1-v100", "V100"), DemandProfile::usual());
  EXPECT_EQ(table.choose({set_of({0, 1, 2, 3, 4}), 4, {}}).reason,
            (DeviceReason{.mb_per_second = 80'000,
                          .best_of_free = 80'000,
                          .best_of_node = 80'000,
                          .numa_nodes = 1,
                          .links = 9}));
  EXPECT_EQ(table.choose({set_of({0, 5, 6}), 2, {}}).reason.links, 2);
  EXPECT_EQ(
      table.choose({set_of({0, 5}), 2, {}}).reason,
      (DeviceReason{
          .mb_per_second = 9'000, .best_of_free = 9'000, .best_of_node = 40'000, .numa_nodes = 2}));
  EXPECT_EQ(table.choose({set_of({0, 5}), 1, {}}).reason, DeviceReason{});
}

TEST(DeviceTable, KeepsTogetherWhatEndsTogether) {
  // Two hives with a pair free in each: the one that one job's end makes whole is left alone.
  const DeviceTable table(8, machine("8xmi100-2hives", "MI100"), DemandProfile::usual());
  const Gpus free = {2, 3, 6, 7};
  EXPECT_EQ(chosen(table, free, 1, {set_of({0, 1}), set_of({4}), set_of({5})}), Gpus{6});
  EXPECT_EQ(chosen(table, free, 1, {set_of({0}), set_of({1}), set_of({4, 5})}), Gpus{2});
}

/// On a switch any set is as fast: all that is left is to stay on one NUMA node while there is
/// room.
TEST(DeviceTable, KeepsJobsOfASwitchOnOneNumaNode) {
  const Topology topology =
      parse_topology(fixture("topo_8xh200.txt"), speeds_of_model("NVIDIA H200")).value();
  const DeviceTable table(8, topology, DemandProfile::usual());
  for (unsigned free = 1; free < 256; ++free) {
    const DeviceSet set(free);
    for (const int count : {2, 3, 4}) {
      if (static_cast<int>(set.count()) < count) continue;
      const int low = static_cast<int>((set & DeviceSet(0x0F)).count());
      const int high = static_cast<int>((set & DeviceSet(0xF0)).count());
      const DeviceChoice choice = table.choose({set, count, {}});
      EXPECT_EQ(choice.reason.numa_nodes, std::max(low, high) >= count ? 1 : 2) << free;
      EXPECT_EQ(choice.reason.mb_per_second, 370'800);
      EXPECT_TRUE(choice.reason.on_switch);
    }
  }
  // Small jobs fill a node that is begun, so that a whole one stays for four.
  EXPECT_EQ(chosen(table, {0, 1, 3, 4, 5, 6, 7}, 1), Gpus{0});
  EXPECT_EQ(chosen(table, {0, 1, 2, 3, 4, 5}, 2), (Gpus{4, 5}));
}

TEST(DeviceTable, TakesLowIndicesWhereNothingIsKnown) {
  for (const int gpus : {3, 8, 12, 16, 24, 256}) {
    const DeviceTable table(gpus, Topology{}, DemandProfile::usual());
    const DeviceChoice choice = table.choose({set_of({0, 1, 2}), 2, {}});
    EXPECT_EQ(choice.devices, (Gpus{0, 1})) << gpus;
    EXPECT_EQ(choice.reason, DeviceReason{}) << gpus;
  }
  const DeviceTable none(0, Topology{}, DemandProfile::usual());
  EXPECT_EQ(none.choose({}).devices, Gpus{});
}

TEST(DeviceTable, GrowsSetsOfManyGpus) {
  // Four boards of 8 on switches of their own cannot be told apart by a common switch: as links.
  Topology topology = plain_topology(32, PathClass::Sys);
  topology.speeds = speeds_of_model("V100");
  for (int a = 0; a < 32; ++a) {
    topology.numa[at(a)] = a / 8;
    for (int b = 0; b < 32; ++b) {
      if (a != b && a / 8 == b / 8) topology.links[at(a * 32 + b)] = 1;
    }
  }
  const DeviceTable table(32, topology, DemandProfile::usual());
  Gpus free = {1, 9, 10, 11, 17, 18, 19, 20, 21};
  EXPECT_EQ(chosen(table, free, 3), (Gpus{9, 10, 11}));  // a board is used up
  EXPECT_EQ(chosen(table, free, 4), (Gpus{17, 18, 19, 20}));
  EXPECT_EQ(chosen(table, free, 1), Gpus{1});
  const DeviceReason reason = table.choose({set_of(free), 4, {}}).reason;
  EXPECT_EQ(reason.numa_nodes, 1);
  EXPECT_EQ(reason.links, 6);
  EXPECT_GE(reason.best_of_node, reason.mb_per_second);
}

/// Whatever is free and held: the devices are free, as many as asked, and no other set is faster.
TEST(DeviceTable, NeverPassesOverAFasterSet) {
  std::mt19937 random(11);
  for (int round = 0; round < 30; ++round) {
    const int gpus =
        round % 3 == 0 ? 9 + static_cast<int>(random() % 2) : 4 + static_cast<int>(random() % 3);
    Topology topology = plain_topology(gpus, PathClass::Sys);
    topology.speeds = speeds_of_model("V100");
    for (int a = 0; a < gpus; ++a) {
      for (int b = 0; b < a; ++b) {
        const int links = std::max(static_cast<int>(random() % 6) - 3, 0);
        topology.links[at(a * gpus + b)] = topology.links[at(b * gpus + a)] = links;
      }
    }
    ASSERT_TRUE(check(topology));
    const DeviceTable table(gpus, topology, DemandProfile::usual());
    const RingTable rings(topology);
    for (int question = 0; question < 50; ++question) {
      const GpuMask free = static_cast<GpuMask>(random()) % (GpuMask{1} << gpus);
      if (free == 0) continue;
      const int count = 1 + static_cast<int>(random() % at(std::popcount(free)));
      // Jobs that share GPUs with each other, and with nobody.
      const std::vector<DeviceSet> held = {DeviceSet(random() & 0x3FF & ~free),
                                           DeviceSet(random() & 0x3FF & ~free)};
      const DeviceChoice choice = table.choose({DeviceSet(free), count, held});
      ASSERT_EQ(static_cast<int>(choice.devices.size()), count);
      GpuMask set = 0;
      for (const int gpu : choice.devices) set |= GpuMask{1} << gpu;
      ASSERT_EQ(std::popcount(set), count);
      ASSERT_EQ(set & ~free, 0U);
      int best = 0;
      for (GpuMask other = free; other != 0; other = (other - 1) & free) {
        if (std::popcount(other) == count) best = std::max(best, rings.speed(other));
      }
      EXPECT_EQ(rings.speed(set), best);
      EXPECT_EQ(choice.reason.best_of_free, count > 1 ? best : 0);
      EXPECT_EQ(table.choose({DeviceSet(free), count, held}).devices, choice.devices);
    }
  }
}

TEST(DivisionValues, AreOneForEachDivision) {
  Prospects prospects{
      .gpus = 4, .shares = std::vector<double>(16, 0.5), .chances = {0, 1, 0, 0, 0}};
  // Bell(5): four GPUs among jobs and nobody.
  EXPECT_EQ(DivisionValues(prospects).size(), 52U);
  prospects.gpus = 8;
  prospects.shares.assign(256, 0.5);
  prospects.chances.assign(9, 1.0 / 8);
  prospects.chances[0] = 0;
  EXPECT_EQ(DivisionValues(prospects).size(), 21'147U);
}

}  // namespace
}  // namespace gflow::placement
