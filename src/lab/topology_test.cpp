// SPDX-License-Identifier: Apache-2.0
#include "lab/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <sstream>

#include "base/text.h"
#include "lab/gpuallocator.h"
#include "lab/rng.h"
#include "os/file.h"
#include "placement/ring.h"

namespace gflow::lab {
namespace {

const std::string kTopologyFixtures = std::string(GFLOW_SOURCE_DIR) + "/tests/fixtures/topology/";

std::vector<WiredMachine> fixture_machines() {
  return read_machines(os::read_file(kTopologyFixtures + "machines.json").value()).value();
}

const Topology& machine(const std::vector<WiredMachine>& machines, std::string_view name) {
  return std::ranges::find(machines, name, &WiredMachine::name)->topology;
}

TEST(WiredMachines, HaveTheRingsAnotherProgramFound) {
  const std::vector<WiredMachine> machines = fixture_machines();
  std::istringstream lines(os::read_file(kTopologyFixtures + "rings.txt").value());
  int compared = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    const placement::RingTable rings(machine(machines, name));
    for (std::string word; words >> word; ++compared) {
      const auto parts = split(word, ':');
      const int count = static_cast<int>(parse_number(parts[0]).value());
      const int rounded = (rings.best(count) + 500) / 1000;
      EXPECT_EQ(std::to_string(rounded), parts[1]) << name << " " << word;
    }
  }
  EXPECT_GT(compared, 100);
}

TEST(WiredMachines, WhatIsNoCollectionIsSaid) {
  for (const char* text : {"",
                           "{}",
                           R"({"machines": {"a": {}}, "pcie_class_GBps": {}})",
                           R"({"machines": {"a": {"gpus": 1000}}, "pcie_class_GBps": {}})"}) {
    EXPECT_FALSE(read_machines(text)) << text;
  }
}

TEST(GpuAllocator, ChoosesAsTheOriginal) {
  const std::vector<WiredMachine> machines = fixture_machines();
  const GpuAllocator allocator(machine(machines, "dgx1-v100"));
  // The cases of its own tests that ask for no GPU by name.
  EXPECT_EQ(allocator.choose(0b00110101, 2), 0b00110000U);  // of 0,2,4,5: 4,5
  EXPECT_EQ(allocator.choose(0b01110001, 2), 0b01100000U);  // of 0,4,5,6: 5,6
  EXPECT_EQ(allocator.choose(0b00001011, 2), 0b00001001U);  // of 0,1,3: 0,3
  EXPECT_EQ(allocator.choose(0b00010011, 2), 0b00010001U);  // of 0,1,4: 0,4
}

double share(const SharingRow& row, SetPolicy policy) {
  return row.shares.at(static_cast<std::size_t>(policy)).value();
}

/// The other one to be compared with: what it takes seconds to choose is left out.
double peer_share(const SharingRow& row) {
  const bool left_out = !row.shares.at(static_cast<std::size_t>(SetPolicy::GpuAllocator));
  return share(row, left_out ? SetPolicy::SumOfPairs : SetPolicy::GpuAllocator);
}

TEST(SharedMachines, ReachTheirTargets) {
  std::map<std::pair<std::string, std::string>, double> targets = {
      {{"dgx1-v100", "A"}, 0.85},
      {{"8xmi250x-gcd-8p1h", "A"}, 0.84},
      {{"8xmi250x-gcd-8p1h", "B"}, 0.79},
      {{"dgx1-p100", "A"}, 0.885},
      {{"4xrtx8000-bridged", "A"}, 0.995},
  };
  std::vector<WiredMachine> machines = fixture_machines();
  std::erase_if(machines, [](const WiredMachine& one) { return one.topology.has_switch(); });
  for (const SharingRow& row : share_machines(machines, {.jobs = 4'000}, {})) {
    const std::pair key(row.machine, std::string(mix_name(row.mix)));
    const double ours = share(row, SetPolicy::Gflow);
    EXPECT_GE(ours, targets[key]) << row.machine << " " << key.second;
    EXPECT_GE(ours, peer_share(row)) << row.machine << " " << key.second;
    EXPECT_LE(ours, 1.0);
    targets.erase(key);
  }
  EXPECT_TRUE(targets.empty()) << targets.begin()->first.first;
}

TEST(SharedMachines, AreSharedAsWellAsCanBe) {
  // No policy that does not know what is still to come reaches more than 0.9407 here (the values of
  // all 52 divisions solved exactly); so many jobs tell 0.94 from the peer's 0.905.
  std::vector<WiredMachine> machines = fixture_machines();
  std::erase_if(machines, [](const auto& one) { return one.name != "4xrtx8000-bridged"; });
  const auto rows = share_machines(machines, {.jobs = 100'000}, {});
  EXPECT_GE(share(rows.at(1), SetPolicy::Gflow), 0.94);
  EXPECT_LT(peer_share(rows.at(1)), 0.91);
}

/// A machine nobody built: PCIe switches and sockets, with bridges, islands, rings or no links.
WiredMachine made_up(std::uint64_t seed) {
  Rng random(seed, 7);
  const auto below = [&](int n) {
    return static_cast<int>(random.below(static_cast<std::uint32_t>(n)));
  };
  const int gpus = below(3) == 0 ? 4 + below(4) : 8;
  WiredMachine made{"made up " + std::to_string(seed), plain_topology(gpus, PathClass::Sys), ""};
  Topology& topology = made.topology;
  topology.speeds = speeds_of_model(
      std::array{"V100", "A40", "MI100", "MI250X"}.at(static_cast<std::size_t>(below(4))));
  const auto set = [&](int a, int b, PathClass path, int links) {
    for (const auto pair : {a * gpus + b, b * gpus + a}) {
      topology.paths[static_cast<std::size_t>(pair)] = path;
      topology.links[static_cast<std::size_t>(pair)] = links;
    }
  };
  const int sockets = 1 + below(2);
  const int on_switch = 1 + below(3);
  const int kind = below(4);
  const int island = 2 + below(3);
  for (int a = 0; a < gpus; ++a) {
    topology.numa[static_cast<std::size_t>(a)] = a * sockets / gpus;
    for (int b = 0; b < a; ++b) {
      const bool same = a * sockets / gpus == b * sockets / gpus;
      PathClass path = same ? PathClass::Phb : PathClass::Sys;
      if (same && a / on_switch == b / on_switch) path = PathClass::Pix;
      int links = 0;
      if (kind == 1 && a / 2 == b / 2) links = 1 + below(4);
      if (kind == 2 && a / island == b / island) links = 1 + below(2);
      if (kind == 3) links = std::max(below(5) - 2, 0);
      set(a, b, path, links);
    }
  }
  return made;
}

TEST(SharedMachines, AreNeverSharedWorseThanByThePeer) {
  std::vector<WiredMachine> machines;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) machines.push_back(made_up(seed));
  for (const WiredMachine& one : machines) ASSERT_TRUE(check(one.topology)) << one.name;
  for (const SharingRow& row : share_machines(machines, {.jobs = 4'000}, {})) {
    EXPECT_GE(share(row, SetPolicy::Gflow), peer_share(row))
        << row.machine << " " << mix_name(row.mix);
  }
}

TEST(SharedMachines, GiveTheSameTableEachTime) {
  const std::vector<WiredMachine> machines = {made_up(3), made_up(4)};
  const SharingOptions options{.jobs = 200, .seeds = 2};
  const auto text = [&] {
    return report_json(topology_report(share_machines(machines, options, {}), options));
  };
  EXPECT_EQ(text(), text());
}

}  // namespace
}  // namespace gflow::lab
