// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/links.h"

#include <gtest/gtest.h>

namespace gflow::devices::sim {
namespace {

/// "links of GPU 0, in all 12 for the machine, switch 0, GPU 0 to the last: SYS".
std::string summary(const Topology& topology) {
  int all = 0;
  for (int other = 0; other < topology.gpus; ++other) all += topology.links_between(0, other);
  std::string out = topology.link_name + " " + std::to_string(all);
  if (topology.has_switch()) out += " switch " + std::to_string(topology.switch_links.at(0));
  if (topology.gpus < 2) return out;
  out += " " + std::string(path_class_name(topology.path_between(0, 1)));
  return out + " " + std::string(path_class_name(topology.path_between(0, topology.gpus - 1)));
}

TEST(SimLinks, AreThoseSuchMachinesHave) {
  const struct {
    const char* models;
    const char* expected;
  } cases[] = {
      {"8xV100", "NV 6 NODE SYS"},
      {"4xV100", "NV 4 NODE SYS"},
      {"16xV100", "NV 0 switch 6 NODE SYS"},
      {"8xH100", "NV 0 switch 18 NODE SYS"},
      {"8xA100", "NV 0 switch 12 NODE SYS"},
      {"1xA100", "NV 0"},
      {"8xMI300X", "XGMI 7 NODE SYS"},
      {"8xMI250X", "XGMI 7 NODE SYS"},
      {"8xRTX4090", "NV 0 PHB SYS"},
      {"2xRTX3090", "NV 0 PHB PHB"},
      {"4xH100+4xA100", "NV 0 PHB SYS"},
      {"9xH100", "NV 0 PHB SYS"},
  };
  for (const auto& one : cases) {
    const auto machine = machine_of_models(one.models);
    ASSERT_TRUE(machine) << machine.error().message;
    EXPECT_EQ(summary(machine->topology), one.expected) << one.models;
    EXPECT_TRUE(check(machine->topology)) << one.models;
    EXPECT_EQ(machine_of(*machine, "sim").topology, machine->topology);
  }
}

TEST(SimLinks, MixedModelsHaveTheSlowestPaths) {
  const auto machine = machine_of_models("H100+V100");
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->topology.pair_speed(0, 1), 12'000);
}

TEST(SimLinks, CanBeGivenAsAMatrix) {
  const auto machine = read_machine(R"(
gpus: [{model: RTX3090, count: 4}]
topology: |
  GPU   GPU0  GPU1  GPU2  GPU3  CPU Affinity  NUMA Affinity
  GPU0  X     NV4   PHB   PHB   0-15          3
  GPU1  NV4   X     PHB   PHB   0-15          3
  GPU2  PHB   PHB   X     NV4   0-15          3
  GPU3  PHB   PHB   NV4   X     0-15          N/A
)",
                                    "m.yaml");
  ASSERT_TRUE(machine) << machine.error().message;
  const Topology& topology = machine->topology;
  EXPECT_EQ(topology.links_between(2, 3), 4);
  EXPECT_EQ(topology.pair_speed(2, 3), 48'000);
  EXPECT_EQ(topology.path_between(1, 2), PathClass::Phb);
  EXPECT_EQ(topology.cpus, (std::vector<NumaCpus>{{3, "0-15"}}));
  EXPECT_EQ(topology.numa, (std::vector<std::optional<int>>{3, 3, 3, 1}));  // 1: as without it
  EXPECT_EQ(machine->devices[0].device.numa_node, 3);
}

TEST(SimLinks, AWrongMatrixIsSaidWithItsLine) {
  const struct {
    const char* text;
    const char* problem;
  } cases[] = {
      {"gpus: [{model: T4}]\ntopology: hello\n",
       "m.yaml:2: topology: there is no line with GPU0 above a matrix"},
      {"gpus: [{model: T4}]\ntopology: |\n  GPU0 GPU1\n  GPU0 X SYS\n  GPU1 SYS X\n",
       "m.yaml:2: topology: the matrix has 2 GPUs, the machine 1"},
      {"gpus: []\ntopology: |\n  GPU0\n  GPU0 X\n",
       "m.yaml:2: topology: a machine without GPUs has no matrix"},
  };
  for (const auto& one : cases) {
    const auto machine = read_machine(one.text, "m.yaml");
    ASSERT_FALSE(machine) << one.text;
    EXPECT_EQ(machine.error(), (Error{Code::Usage, one.problem}));
  }
}

}  // namespace
}  // namespace gflow::devices::sim
