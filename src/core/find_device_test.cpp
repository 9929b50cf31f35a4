// SPDX-License-Identifier: Apache-2.0
#include "core/find_device.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

TEST(GpuNumber, CountsGpusWhereSomeAreCut) {
  Machine machine;
  for (const char* address : {"0000:3b:00.0", "0000:3b:00.0", "0000:5e:00.0", "10000:01:00.0"}) {
    Device device;
    device.index = static_cast<int>(machine.devices.size());
    device.vendor = "nvidia";
    device.pci_address = address;
    machine.devices.push_back(device);
  }
  const auto numbers = [&machine] {
    std::vector<const Device*> all;
    for (const Device& device : machine.devices) all.push_back(&device);
    std::vector<int> found;
    for (const Device* device : all) found.push_back(gpu_number(*device, all));
    return found;
  };
  EXPECT_EQ(numbers(), (std::vector{0, 1, 2, 3}));
  machine.devices[0].mig = MigDevice{"GPU-a", "3g.20gb", 1, 0};
  machine.devices[1].mig = MigDevice{"GPU-a", "3g.20gb", 2, 0};
  EXPECT_EQ(numbers(), (std::vector{0, 0, 1, 2}));
  Device gone;  // of which a job knows the index alone
  gone.index = 4;
  gone.vendor = "nvidia";
  gone.mig = MigDevice{};
  machine.devices.push_back(gone);
  EXPECT_EQ(numbers(), (std::vector{0, 0, 1, 2, 4}));
}

}  // namespace
}  // namespace gflow
