// SPDX-License-Identifier: Apache-2.0
#include "api/topology_view.h"

#include <gtest/gtest.h>

#include "api/json.h"

namespace gflow::api {
namespace {

Topology sample() {
  Topology topology = plain_topology(2, PathClass::Node);
  topology.links = {0, 2, 2, 0};
  topology.switch_links = {6, 5};
  topology.speeds = {.link = 20'000, .path = {0, 12'000, 12'000, 12'000, 9'000, 8'000}};
  topology.numa = {1, std::nullopt};
  topology.cpus = {{1, "0-23,48-71"}};
  return topology;
}

TEST(TopologyView, CarriesAllOfATopology) {
  for (const Topology& topology : {sample(), plain_topology(1, PathClass::Sys), Topology{}}) {
    MachineView machine;
    machine.nodes.emplace_back().topology = view_of(topology);
    const auto read = read_machine(write(machine));
    ASSERT_TRUE(read) << read.error().message;
    const auto again = topology_of(read->nodes.front().topology);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, topology);
  }
}

TEST(TopologyView, IsReadableJson) {
  MachineView machine;
  machine.nodes.emplace_back().topology = view_of(sample());
  const std::string json = write(machine);
  for (const char* part : {R"("links":[[0,2],[2,0]])",
                           R"("paths":[["X","NODE"],["NODE","X"]])",
                           R"("numa_nodes":[1,null])",
                           R"("SYS":8000)",
                           R"("numa_cpus":[{"node":1,"cpus":"0-23,48-71"}])"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
  }
}

TEST(TopologyView, RowsThatAreNoMatrixAreRefused) {
  TopologyView view = view_of(sample());
  view.links[1] = {2};
  EXPECT_EQ(topology_of(view).error().message, "the matrix has not 2 rows and columns");
  view = view_of(sample());
  view.gpus = 1'000'000'000;
  EXPECT_EQ(topology_of(view).error().message, "a machine has 0 to 256 GPUs");
  view = view_of(sample());
  view.paths[0][1] = PathClass::Sys;
  EXPECT_FALSE(topology_of(view));
}

}  // namespace
}  // namespace gflow::api
