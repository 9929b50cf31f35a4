// SPDX-License-Identifier: Apache-2.0
#include "core/topology.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/device_reason.h"

namespace gflow {
namespace {

const LinkSpeeds kV100 = speeds_of_model("Tesla V100-SXM2-32GB");

std::string fixture(const std::string& name) {
  std::ifstream file(std::string(GFLOW_SOURCE_DIR) + "/tests/fixtures/topology/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// "8 NV2 SYS switch 0 nodes 0011": GPUs, two pairs, links to a switch, NUMA nodes.
std::string summary(const Topology& topology) {
  std::string out = std::to_string(topology.gpus);
  if (topology.gpus > 1) {
    out += " links " + std::to_string(topology.links_between(0, 1)) + "," +
           std::to_string(topology.links_between(0, topology.gpus - 1));
    out += " paths " + std::string(path_class_name(topology.path_between(0, 1))) + "," +
           std::string(path_class_name(topology.path_between(0, topology.gpus - 1)));
  }
  if (topology.has_switch()) out += " switch " + std::to_string(topology.switch_links[0]);
  out += " nodes ";
  for (const auto& node : topology.numa) out += node ? std::to_string(*node) : "-";
  for (const NumaCpus& cpus : topology.cpus) {
    out += " " + std::to_string(cpus.node) + "=" + cpus.cpus;
  }
  return out;
}

struct Capture {
  std::string file;
  std::string expected;
};

class Captures : public testing::TestWithParam<Capture> {};

TEST_P(Captures, AreRead) {
  const auto topology = parse_topology(fixture(GetParam().file), kV100);
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(summary(*topology), GetParam().expected);
  EXPECT_TRUE(check(*topology));
}

INSTANTIATE_TEST_SUITE_P(
    Topology,
    Captures,
    testing::Values(Capture{"topo_8xv100.txt",
                            "8 links 1,2 paths NODE,SYS nodes 00001111 0=0-23,48-71 1=24-47,72-95"},
                    Capture{"topo_8xh200.txt",
                            "8 links 0,0 paths NODE,SYS switch 18 nodes 00001111 "
                            "0=0-63,128-191 1=64-127,192-255"},
                    Capture{"topo_dgx_h100.txt",
                            "8 links 0,0 paths NODE,SYS switch 18 nodes 00001111 "
                            "0=0-55,112-167 1=56-111,168-223"},
                    Capture{
                        "topo_8xrtx4090_all_sys.txt",
                        "8 links 0,0 paths SYS,SYS nodes 00001111 0=0-55,112-167 1=56-111,168-223"},
                    Capture{"topo_1xh200.txt", "1 nodes 0 0=0-23"}));

TEST(Topology, ReadsEveryMatrixOfTheCollection) {
  const std::string text = fixture("topo_matrices.txt");
  int count = 0;
  for (std::size_t at = text.find("# "); at != std::string::npos; ++count) {
    const std::size_t next = text.find("\n# ", at + 1);
    const std::string one = text.substr(at, next == text.npos ? text.npos : next - at);
    const auto topology = parse_topology(one, kV100);
    ASSERT_TRUE(topology) << one << topology.error().message;
    // What was printed is read as the same.
    const auto again = parse_topology(topology_text(*topology), kV100);
    ASSERT_TRUE(again) << topology_text(*topology) << again.error().message;
    EXPECT_EQ(*again, *topology) << one;
    at = next == text.npos ? next : next + 1;
  }
  EXPECT_EQ(count, 25);
}

TEST(Topology, PrintsWhatWasRead) {
  const auto topology = parse_topology(
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNV2\tPIX\t0-7\t0\n"
      "GPU1\tNV2\t X \tSYS\t0-7\t0\n"
      "GPU2\tPIX\tSYS\t X \t8-15\tN/A\n",
      kV100);
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology_text(*topology),
            "GPU   GPU0  GPU1  GPU2  CPU Affinity  NUMA Affinity\n"
            "GPU0  X     NV2   PIX   0-7           0\n"
            "GPU1  NV2   X     SYS   0-7           0\n"
            "GPU2  PIX   SYS   X     N/A           N/A\n");
  EXPECT_EQ(topology->pair_speed(0, 1), 40'000);
  EXPECT_EQ(topology->pair_speed(0, 2), 12'000);
  EXPECT_EQ(topology->pair_speed(1, 2), 9'000);
}

TEST(Topology, RefusesWhatIsNoMatrix) {
  const struct {
    std::string text;
    std::string problem;
  } cases[] = {
      {"", "there is no line with GPU0 above a matrix"},
      {"hello\nworld\n", "there is no line with GPU0 above a matrix"},
      {"GPU0 GPU1\nGPU0 X SYS\n", "line 1: a column without a row"},
      {"GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\nGPU2 X X\n", "line 4: a row without a column"},
      {"GPU0 GPU1\nGPU0 X\n", "line 2: too few columns"},
      {"GPU0 GPU1\nGPU0 X FAR\nGPU1 FAR X\n",
       "line 2: 'FAR' is none of X, PIX, PXB, PHB, NODE, SYS, NV1 to NV64"},
      {"GPU0 GPU1\nGPU0 X NV0\nGPU1 NV0 X\n",
       "line 2: 'NV0' is none of X, PIX, PXB, PHB, NODE, SYS, NV1 to NV64"},
      {"GPU0 GPU1\nGPU0 X NV1\nGPU1 NV2 X\n",
       "GPU 0 and GPU 1: both directions have to be the same"},
      {"GPU0 GPU1\nGPU0 X SYS\nGPU1 PIX X\n",
       "GPU 0 and GPU 1: both directions have to be the same"},
      {"GPU0 GPU1\nGPU0 X X\nGPU1 X X\n",
       "GPU 0 and GPU 1: X is for a GPU and itself, and only that"},
  };
  for (const auto& one : cases) {
    const auto topology = parse_topology(one.text, kV100);
    ASSERT_FALSE(topology) << one.text;
    EXPECT_EQ(topology.error(), (Error{Code::Usage, one.problem})) << one.text;
  }
}

TEST(Topology, ChecksSizes) {
  Topology topology = plain_topology(3, PathClass::Phb);
  EXPECT_TRUE(check(topology));
  EXPECT_TRUE(check(Topology{}));
  topology.switch_links = {6, 6};
  EXPECT_EQ(check(topology).error().message, "the matrix has not 3 rows and columns");
  topology.switch_links = {6, 6, kMaxLinks + 1};
  EXPECT_EQ(check(topology).error().message, "0 to 64 links to a switch are possible");
}

TEST(Topology, KnowsTheSpeedsOfModels) {
  const struct {
    std::string model;
    int link;
    int bridge;
  } cases[] = {
      {"Tesla V100-SXM2-32GB", 20'000, 12'000},
      {"NVIDIA A100-SXM4-80GB", 20'000, 24'000},
      {"NVIDIA A10", 20'000, 24'000},
      {"NVIDIA H100 80GB HBM3", 20'600, 48'000},
      {"NVIDIA GeForce RTX 3090", 12'000, 24'000},
      {"AMD Instinct MI250X", 36'000, 24'000},
      {"AMD Instinct MI300X", 48'000, 48'000},
      {"NVIDIA GeForce RTX 2080 Ti", 20'000, 12'000},
      {"something new", 20'000, 24'000},
  };
  for (const auto& one : cases) {
    const LinkSpeeds speeds = speeds_of_model(one.model);
    EXPECT_EQ(speeds.link, one.link) << one.model;
    EXPECT_EQ(speeds.path.at(static_cast<std::size_t>(PathClass::Pix)), one.bridge) << one.model;
  }
}

TEST(DeviceReason, IsSaidInAClause) {
  const struct {
    DeviceReason reason;
    std::string text;
  } cases[] = {
      {{}, ""},
      {{.mb_per_second = 80'000,
        .best_of_free = 80'000,
        .best_of_node = 80'000,
        .numa_nodes = 1,
        .links = 9},
       "ring of 80 GB/s, the best of this machine; 9 links; 1 NUMA node"},
      {{.mb_per_second = 9'000, .best_of_free = 9'000, .best_of_node = 40'000, .numa_nodes = 2},
       "ring of 9 GB/s, the best of the free GPUs (40 GB/s on an idle machine); 2 NUMA nodes"},
      {{.mb_per_second = 370'800,
        .best_of_free = 370'800,
        .best_of_node = 370'800,
        .numa_nodes = 1,
        .on_switch = true},
       "ring of 370.8 GB/s, the best of this machine; one switch; 1 NUMA node"},
      {{.mb_per_second = 20'000, .best_of_free = 40'000, .best_of_node = 80'000, .links = 1},
       "ring of 20 GB/s, the free GPUs reach 40 GB/s, an idle machine 80 GB/s; 1 link"},
  };
  for (const auto& one : cases) EXPECT_EQ(device_reason_text(one.reason), one.text);
}

}  // namespace
}  // namespace gflow
