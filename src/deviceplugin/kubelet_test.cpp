// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/kubelet.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/file.h"

namespace gflow::deviceplugin {
namespace {

TEST(Kubelet, ItsFileSaysOfWhichPodTicketsAre) {
  const std::string folder = testing::TempDir() + "/gflow-kubelet-" + std::to_string(::getpid());
  ASSERT_TRUE(os::make_directories(folder));
  const auto uid = [&](const Tickets& tickets) {
    return uid_of_holder(folder, "nvidia.com/gpu", tickets).value_or("");
  };
  EXPECT_EQ(uid({"gpu-0"}), "") << "there is none";
  ASSERT_TRUE(
      os::write_file(folder + "/kubelet_internal_checkpoint", R"({"Data":{"PodDeviceEntries":[
    {"PodUID":"other","ContainerName":"main","ResourceName":"gflow/allocation","DeviceIDs":{"-1":["gpu-0"]},"AllocResp":""},
    {"PodUID":"u1","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["gpu-0"],"0":["gpu-2"]},"AllocResp":""},
    {"PodUID":"u2","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["gpu-1",7]},"AllocResp":""}
    ],"RegisteredDevices":{}},"Checksum":1})"));
  EXPECT_EQ(uid({"gpu-0", "gpu-2"}), "u1");
  EXPECT_EQ(uid({"gpu-2"}), "u1") << "handed on by one that ended";
  EXPECT_EQ(uid({"gpu-1"}), "u2");
  EXPECT_EQ(uid({"gpu-1", "gpu-2"}), "");
  ASSERT_TRUE(os::write_file(folder + "/kubelet_internal_checkpoint", "[]"));
  EXPECT_EQ(uid({"gpu-1"}), "");
  (void)os::remove_tree(folder);
}

TEST(Kubelet, AKeyIsOfAResourceAndTickets) {
  EXPECT_EQ(key_of("a/b", {"1", "2"}), key_of("a/b", {"2", "1"}));
  EXPECT_NE(key_of("a/b", {"1", "2"}), key_of("a/b", {"1"}));
  EXPECT_NE(key_of("a/b", {"1"}), key_of("a/c", {"1"}));
  EXPECT_EQ(key_of("a/b", {"1"}).size(), 32U);
}

}  // namespace
}  // namespace gflow::deviceplugin
