// SPDX-License-Identifier: Apache-2.0
#include "kube/inventory.h"

#include <gtest/gtest.h>

namespace gflow::kube {
namespace {

TEST(Inventory, WhatIsNoListOfDevicesIsNone) {
  EXPECT_TRUE(read_inventory("").empty());
  EXPECT_TRUE(read_inventory("{").empty());
  EXPECT_TRUE(read_inventory(R"({"devices":7})").empty());
  const std::string one = R"({"resource":"nvidia.com/gpu","index":0,"uuid":"a","model":"m"})";
  EXPECT_EQ(read_inventory(R"({"devices":[)" + one + "]}").size(), 1U);
  EXPECT_TRUE(read_inventory(R"({"devices":[)" + one + "," + one + "]}").empty()) << "twice";
  EXPECT_TRUE(read_inventory(R"({"devices":[)" + one + R"(,{"index":-1}]})").empty());
  const std::vector<ListedDevice> devices = {{.resource = "amd.com/gpu",
                                              .index = 3,
                                              .uuid = "u",
                                              .model = "m",
                                              .memory = Memory{7},
                                              .trouble = "t"}};
  EXPECT_EQ(read_inventory(inventory_text(devices)), devices);
}

}  // namespace
}  // namespace gflow::kube
