// SPDX-License-Identifier: Apache-2.0
#include "cli/info/links_text.h"

#include <gtest/gtest.h>

namespace gflow::cli {
namespace {

api::NodeView node_with(const Topology& topology) {
  api::NodeView node;
  node.devices.resize(static_cast<std::size_t>(topology.gpus));
  node.topology = api::view_of(topology);
  return node;
}

TEST(LinksText, IsTheMatrixAndWhatItMeans) {
  Topology topology = plain_topology(3, PathClass::Phb);
  topology.speeds = speeds_of_model("NVIDIA GeForce RTX 3090");
  topology.links = {0, 4, 0, 4, 0, 0, 0, 0, 0};
  topology.paths[1] = topology.paths[3] = PathClass::Node;  // not to be seen
  topology.numa = {0, 0, 0};
  topology.cpus = {{0, "0-31"}};
  EXPECT_EQ(links_text(node_with(topology), 0).value(),
            "GPU   GPU0  GPU1  GPU2  CPU Affinity  NUMA Affinity\n"
            "GPU0  X     NV4   PHB   0-31          0\n"
            "GPU1  NV4   X     PHB   0-31          0\n"
            "GPU2  PHB   PHB   X     0-31          0\n"
            "\n"
            "  NV#   that many NVLinks, 12 GB/s each\n"
            "  PHB   the host bridge of a CPU, 24 GB/s\n");
}

TEST(LinksText, OfASwitch) {
  Topology topology = plain_topology(2, PathClass::Sys);
  topology.speeds = speeds_of_model("NVIDIA H100 80GB HBM3");
  topology.switch_links = {18, 18};
  EXPECT_EQ(links_text(node_with(topology), 0).value(),
            "GPU   GPU0  GPU1  CPU Affinity  NUMA Affinity\n"
            "GPU0  X     NV18  N/A           N/A\n"
            "GPU1  NV18  X     N/A           N/A\n"
            "\n"
            "  NV#   that many NVLinks to a switch, 20.6 GB/s each\n");
}

TEST(LinksText, FitsTheScreen) {
  Topology topology = plain_topology(3, PathClass::Node);
  topology.numa = {0, 0, 0};
  topology.cpus = {{0, "0-31"}};
  EXPECT_EQ(links_text(node_with(topology), 34).value(),
            "GPU   GPU0  GPU1  GPU2\n"
            "GPU0  X     NODE  NODE\n"
            "GPU1  NODE  X     NODE\n"
            "GPU2  NODE  NODE  X\n"
            "\n"
            "GPU   CPU Affinity  NUMA Affinity\n"
            "GPU0  0-31          0\n"
            "GPU1  0-31          0\n"
            "GPU2  0-31          0\n"
            "\n"
            "  NODE  several host bridges of\n"
            "        one NUMA node, speed not\n"
            "        known\n");
}

TEST(LinksText, SaysWhatIsNotKnown) {
  api::NodeView node;
  node.note = "libnvidia-ml.so.1 is not installed";
  EXPECT_EQ(links_text(node, 0).value(), "No GPUs: libnvidia-ml.so.1 is not installed\n");
  node.devices.resize(2);
  EXPECT_EQ(links_text(node, 0).value(), "How the GPUs are connected is not known.\n");
  node.topology.gpus = 2;
  EXPECT_FALSE(links_text(node, 0));
}

}  // namespace
}  // namespace gflow::cli
