// SPDX-License-Identifier: Apache-2.0
#include "kube/want.h"

#include <gtest/gtest.h>

#include "core/catalogue.h"

namespace gflow::kube {
namespace {

/// Under the strategy "single" of NVIDIA's plugin a node offers its slices as nvidia.com/gpu.
TEST(DevicesOf, SlicesThatAreOfferedAsGpusCountAsSuch) {
  Node node;
  node.name = "n1";
  node.allocatable["nvidia.com/gpu"] = 7000;  // in thousandths
  node.labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb";
  node.labels["nvidia.com/gpu.memory"] = "4864";
  const std::vector<Device> devices = devices_of(node);
  ASSERT_EQ(devices.size(), 7U);
  EXPECT_EQ(catalogue::short_model("nvidia", devices[0].model), "A100");
  EXPECT_EQ(devices[0].memory_total, Memory::mib(4864));
}

}  // namespace
}  // namespace gflow::kube
