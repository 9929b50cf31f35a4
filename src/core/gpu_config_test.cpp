// SPDX-License-Identifier: Apache-2.0
#include "core/gpu_config.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

Device device(std::string model, std::optional<Memory> memory) {
  return {.vendor = "nvidia", .model = std::move(model), .memory_total = memory};
}

TEST(GpuConfig, GivesMemoryToDevicesThatReportNone) {
  GpuConfig config;
  config.memory_specs = {{"A40", Memory::gib(46)}, {"TOASTER1", Memory::gib(2)}};
  Machine machine;
  machine.devices = {device("NVIDIA A40", std::nullopt),
                     device("NVIDIA A40", Memory::mib(46068)),
                     device("Tesla V100-SXM2-16GB", std::nullopt),
                     device("Tesla V100", std::nullopt),
                     device("Toaster 1", std::nullopt),
                     device("Kettle 2", std::nullopt)};
  fill_memory(machine, config);
  EXPECT_EQ(machine.devices[0].memory_total, Memory::gib(46)) << "the configuration";
  EXPECT_EQ(machine.devices[1].memory_total, Memory::mib(46068)) << "the device itself";
  EXPECT_EQ(machine.devices[2].memory_total, Memory::gib(16)) << "its own name";
  EXPECT_EQ(machine.devices[3].memory_total, Memory::gib(32)) << "the catalogue";
  EXPECT_EQ(machine.devices[4].memory_total, Memory::gib(2));
  EXPECT_EQ(machine.devices[5].memory_total, std::nullopt);
}

Machine reading(int utilization, int watts, int mib) {
  Device read = device("NVIDIA H200", Memory::gib(141));
  read.utilization_percent = utilization;
  read.power_milliwatts = watts * 1000;
  read.power_limit_milliwatts = 700'000;
  read.temperature_celsius = utilization;
  read.memory_used = Memory::mib(mib);
  Machine machine;
  machine.devices = {read};
  return machine;
}

TEST(GpuConfig, SmallChangesAreNoNews) {
  const Share twentieth = Share::percent(5);
  const Machine before = reading(50, 300, 1000);
  EXPECT_FALSE(is_news(before, before, twentieth));
  EXPECT_FALSE(is_news(before, reading(54, 300, 1000), twentieth));
  EXPECT_TRUE(is_news(before, reading(55, 300, 1000), twentieth));
  EXPECT_FALSE(is_news(before, reading(50, 334, 1000), twentieth));
  EXPECT_TRUE(is_news(before, reading(50, 335, 1000), twentieth));
  EXPECT_TRUE(is_news(before, reading(50, 300, 1001), twentieth)) << "memory is exact";
  EXPECT_TRUE(is_news(reading(2, 300, 1000), reading(0, 300, 1000), twentieth)) << "now idle";
  EXPECT_TRUE(is_news(before, reading(51, 300, 1000), Share{}));
  Machine other = before;
  other.devices[0].processes.push_back({.pid = 7});
  EXPECT_TRUE(is_news(before, other, twentieth));
  other = before;
  other.devices.clear();
  EXPECT_TRUE(is_news(before, other, twentieth));
  other = before;
  other.note = "the driver does not answer";
  EXPECT_TRUE(is_news(before, other, twentieth));
}

}  // namespace
}  // namespace gflow
