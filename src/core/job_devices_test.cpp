// SPDX-License-Identifier: Apache-2.0
#include "core/job_devices.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

/// Two GPUs, the second cut into two, and one that the driver cannot open.
Machine machine_with_nodes() {
  Machine machine;
  machine.isolation = GpuIsolation::Filter;
  machine.gpu_nodes = {{"nvidia", {{195, 0, 247}, {507, 3, 200}}}};
  Device whole;
  whole.index = 0;
  whole.nodes = {DeviceNodes::one(195, 1), DeviceNodes::one(226, 128)};
  Device slice;
  slice.index = 1;
  slice.nodes = {DeviceNodes::one(195, 0), DeviceNodes::one(507, 12)};
  Device other = slice;
  other.index = 2;
  other.nodes = {DeviceNodes::one(195, 0), DeviceNodes::one(507, 21)};
  machine.devices = {whole, slice, other};
  for (Device& device : machine.devices) device.vendor = "nvidia";
  return machine;
}

std::optional<DeviceFilter> filter_for(const Machine& machine,
                                       std::vector<int> gpus,
                                       bool see_all = false) {
  Job job;
  job.spec.request.see_all = see_all;
  Attempt attempt;
  attempt.allocation.gpus = std::move(gpus);
  return device_filter_of(job, attempt, machine);
}

TEST(GpuIsolation, AJobOpensItsOwnDevicesAndNoOther) {
  const Machine machine = machine_with_nodes();
  const auto opens = [&machine](std::vector<int> gpus, std::uint32_t major, std::uint32_t minor) {
    const auto filter = filter_for(machine, std::move(gpus));
    return filter && !filter->denies(major, minor);
  };
  EXPECT_TRUE(opens({0}, 195, 1));
  EXPECT_TRUE(opens({0}, 226, 128));
  EXPECT_FALSE(opens({0}, 195, 0));
  EXPECT_FALSE(opens({0}, 507, 12));
  EXPECT_TRUE(opens({1}, 195, 0)) << "the GPU it is cut from";
  EXPECT_TRUE(opens({1}, 507, 12));
  EXPECT_FALSE(opens({1}, 507, 21)) << "the other slice of it";
  EXPECT_FALSE(opens({1}, 226, 128));
  EXPECT_TRUE(opens({0, 2}, 507, 21));
  EXPECT_FALSE(opens({}, 195, 1)) << "a job without GPUs";
  EXPECT_FALSE(opens({0}, 195, 7)) << "a GPU that is not listed";
  EXPECT_TRUE(opens({}, 195, 255)) << "nvidiactl";
}

TEST(GpuIsolation, WhereItCannotBe) {
  Machine machine = machine_with_nodes();
  EXPECT_FALSE(filter_for(machine, {}, true)) << "it asked to see all";
  machine.devices[0].nodes.clear();
  EXPECT_FALSE(filter_for(machine, {0})) << "its own would be denied, too";
  EXPECT_TRUE(filter_for(machine, {1}));
  machine.isolation = GpuIsolation::None;
  EXPECT_FALSE(filter_for(machine, {1}));
  Machine bare;
  bare.isolation = GpuIsolation::Filter;
  bare.devices.emplace_back();
  EXPECT_FALSE(filter_for(bare, {0}));
  EXPECT_FALSE(filter_for(bare, {})) << "no device node is known";
  Job allocation;
  allocation.spec.allocation = true;
  EXPECT_FALSE(device_filter_of(allocation, {}, machine_with_nodes()));
}

TEST(GpuIsolation, OneWhoseOwnNodesAreNotKnownIsKeptFromOtherVendors) {
  Machine machine = machine_with_nodes();
  Device amd;
  amd.index = 3;
  amd.vendor = "amd";
  machine.devices.push_back(amd);
  const auto filter = filter_for(machine, {3}).value();
  EXPECT_TRUE(filter.denies(195, 1));
  EXPECT_TRUE(filter.denies(195, 9));
  EXPECT_TRUE(filter.denies(226, 128));
  machine.devices[0].nodes.clear();
  machine.devices[3].nodes = {DeviceNodes::one(226, 130)};
  const auto other = filter_for(machine, {0}).value();
  EXPECT_TRUE(other.denies(226, 130));
  EXPECT_FALSE(other.denies(195, 0)) << "which might be its own";
  EXPECT_FALSE(other.denies(507, 12));
  EXPECT_EQ(gpus_without_nodes(machine), "0");
  EXPECT_EQ(gpus_without_nodes(machine_with_nodes()), "");
  machine.isolation = GpuIsolation::None;
  EXPECT_EQ(gpus_without_nodes(machine), "");
}

}  // namespace
}  // namespace gflow
