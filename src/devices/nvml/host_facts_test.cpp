// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/host_facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "devices/machine_folder.h"
#include "os/user.h"

namespace gflow::devices::nvml {
namespace {

void add_device(const std::string& sysfs,
                const std::string& address,
                const char* const (&facts)[3]) {
  const std::string folder = sysfs + "/bus/pci/devices/" + address;
  ASSERT_TRUE(os::make_directories(folder));
  ASSERT_TRUE(os::write_file(folder + "/vendor", facts[0]));
  ASSERT_TRUE(os::write_file(folder + "/class", facts[1]));
  ASSERT_TRUE(os::write_file(folder + "/numa_node", facts[2]));
}

TEST(HostFacts, NumaNodesAndGpusByThePciBus) {
  const testing::MachineFolder folder;
  EXPECT_EQ(count_nvidia_on_pci(folder.path()), 0);
  add_device(folder.path(), "0000:3b:00.0", {"0x10de\n", "0x030200\n", "1\n"});
  add_device(folder.path(), "0000:3b:00.1", {"0x10de\n", "0x040300\n", "1\n"});  // its sound
  add_device(folder.path(), "0000:01:00.0", {"0x10de\n", "0x030000\n", "-1\n"});
  add_device(folder.path(), "0000:02:00.0", {"0x8086\n", "0x030000\n", "0\n"});
  EXPECT_EQ(count_nvidia_on_pci(folder.path()), 2);
  EXPECT_EQ(numa_node(folder.path(), "0000:3b:00.0"), 1);
  EXPECT_EQ(numa_node(folder.path(), "0000:02:00.0"), 0);
  EXPECT_EQ(numa_node(folder.path(), "0000:01:00.0"), std::nullopt);  // the kernel does not know
  EXPECT_EQ(numa_node(folder.path(), "0000:99:00.0"), std::nullopt);
}

TEST(HostFacts, CpusOfANumaNode) {
  const testing::MachineFolder folder;
  const std::string node = folder.path() + "/devices/system/node/node1";
  ASSERT_TRUE(os::make_directories(node));
  ASSERT_TRUE(os::write_file(node + "/cpulist", "0-23,48-71\n"));
  EXPECT_EQ(cpus_of_node(folder.path(), 1), "0-23,48-71");
  EXPECT_EQ(cpus_of_node(folder.path(), 0), "");
  ASSERT_TRUE(os::write_file(node + "/cpulist", "all of them\n"));
  EXPECT_EQ(cpus_of_node(folder.path(), 1), "");
}

TEST(HostFacts, ProcessesSeenFromHere) {
  EXPECT_EQ(process_name(::getpid()), "devices_test");
  EXPECT_EQ(process_user(::getpid()), os::own_account().name);
  EXPECT_EQ(process_name(1 << 30), "");
  EXPECT_EQ(process_user(1 << 30), "");
}

}  // namespace
}  // namespace gflow::devices::nvml
