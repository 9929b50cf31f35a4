// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/device_nodes.h"

#include <gtest/gtest.h>

#include "devices/machine_folder.h"
#include "os/file.h"

namespace gflow::devices::nvml {
namespace {

class DeviceNodesOf : public ::testing::Test {
 protected:
  /// Two GPUs, of which the second is cut into two.
  [[nodiscard]] static Report report() {
    Report made;
    made.devices.resize(2);
    made.devices[0].minor = 3;
    made.devices[0].pci_address = "0000:3b:00.0";
    made.devices[1].minor = 0;
    made.devices[1].slices.resize(2);
    made.devices[1].slices[0].gpu_instance = 1;
    made.devices[1].slices[1].gpu_instance = 9;
    made.devices[1].slices[1].compute_instance = 1;
    return made;
  }
  void write(const std::string& name, const std::string& text) const {
    const std::string path = folder_.path() + "/" + name;
    ASSERT_TRUE(os::make_directories(path.substr(0, path.rfind('/'))));
    ASSERT_TRUE(os::write_file(path, text));
  }
  [[nodiscard]] std::string text_of(const std::vector<DeviceNodes>& nodes) const {
    std::string text;
    for (const gflow::DeviceNodes& one : nodes) text += device_nodes_text(one) + " ";
    return text;
  }
  void add(Report& report) const {
    add_device_nodes(folder_.path() + "/sys", folder_.path() + "/proc", report);
  }

  testing::MachineFolder folder_;
};

TEST_F(DeviceNodesOf, AGpuByItsMinorNumberAndItsAddress) {
  const std::string drm = "sys/bus/pci/devices/0000:3b:00.0/drm/";
  write(drm + "card1/dev", "226:1\n");
  write(drm + "renderD129/dev", "226:129\n");
  write(drm + "version", "drm 1.1\n");
  Report made = report();
  add(made);
  EXPECT_EQ(text_of(made.devices[0].nodes), "195:3 226:1 226:129 ");
  EXPECT_EQ(text_of(made.devices[1].nodes), "195:0 ");
  EXPECT_EQ(text_of(made.gpu_nodes), "195:0-247 ");
  EXPECT_TRUE(made.devices[1].slices[0].nodes.empty()) << "the driver does not tell";
}

TEST_F(DeviceNodesOf, ASliceByItsInstances) {
  write(
      "proc/devices",
      "Character devices:\n  1 mem\n195 nvidia\n507 nvidia-caps\n508 nvidia-caps-imex-channels\n\n"
      "Block devices:\n  7 loop\n");
  write("proc/driver/nvidia-caps/mig-minors",
        "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu0/gi9/access 84\n"
        "gpu0/gi9/ci1/access 86\ngpu0/gi9/ci0/access 85\nnonsense\ngpu3/gi1/access 11\n");
  Report made = report();
  add(made);
  EXPECT_EQ(text_of(made.gpu_nodes), "195:0-247 507:11-13 507:84-86 ");
  EXPECT_EQ(text_of(made.devices[1].slices[0].nodes), "507:12 507:13 ");
  EXPECT_EQ(text_of(made.devices[1].slices[1].nodes), "507:84 507:86 ");
}

TEST_F(DeviceNodesOf, WhatIsNotToldIsNotKnown) {
  Report none;
  add(none);
  EXPECT_EQ(text_of(none.gpu_nodes), "195:0-247 ") << "they may come";
  Report made = report();
  made.devices[0].minor.reset();
  write("proc/devices", "507 nvidia-caps\n");
  write("proc/driver/nvidia-caps/mig-minors", "gpu0/gi1/access 12\n");
  add(made);
  EXPECT_TRUE(made.devices[0].nodes.empty());
  EXPECT_TRUE(made.devices[1].slices[0].nodes.empty()) << "its compute instance has no number";
}

}  // namespace
}  // namespace gflow::devices::nvml
