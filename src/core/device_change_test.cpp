// SPDX-License-Identifier: Apache-2.0
#include "core/device_change.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

constexpr Share kTwentieth = Share::percent(5);

Machine machine(std::initializer_list<Device> devices) {
  Machine made;
  made.name = "lab1";
  made.devices = devices;
  return made;
}

Device gpu(int utilization, Memory used, int milliwatts, bool usable = true) {
  Device device;
  device.index = 3;
  device.uuid = "GPU-a";
  device.utilization_percent = utilization;
  device.memory_total = Memory::gib(20);
  device.memory_used = used;
  device.power_milliwatts = milliwatts;
  device.power_limit_milliwatts = 300'000;
  device.usable = usable;
  return device;
}

std::vector<std::string> texts(const std::vector<DeviceChange>& changes) {
  std::vector<std::string> all;
  for (const DeviceChange& change : changes) all.push_back(change_text(change));
  return all;
}

TEST(DeviceChanges, TellsWhatMovedByTheThreshold) {
  using Texts = std::vector<std::string>;
  DeviceChanges seen;
  EXPECT_EQ(texts(seen.see(machine({gpu(50, Memory::gib(4), 100'000)}), kTwentieth)), Texts());
  EXPECT_EQ(texts(seen.see(machine({gpu(54, Memory::mib(5000), 114'000)}), kTwentieth)), Texts());
  EXPECT_EQ(texts(seen.see(machine({gpu(55, Memory::gib(5), 115'000)}), kTwentieth)),
            (Texts{"GPU 3 of lab1 (GPU-a): utilization 50% -> 55%",
                   "GPU 3 of lab1 (GPU-a): memory_used 4G -> 5G",
                   "GPU 3 of lab1 (GPU-a): power 100 W -> 115 W"}))
      << "also what crept there";
  EXPECT_EQ(texts(seen.see(machine({gpu(1, Memory::gib(5), 115'000)}), kTwentieth)),
            Texts{"GPU 3 of lab1 (GPU-a): utilization 55% -> 1%"});
  EXPECT_EQ(texts(seen.see(machine({gpu(0, Memory::gib(5), 115'000)}), kTwentieth)),
            Texts{"GPU 3 of lab1 (GPU-a): utilization 1% -> 0%"})
      << "idle is always news";
  EXPECT_EQ(texts(seen.see(machine({gpu(0, Memory::gib(5), 115'000, false)}), kTwentieth)),
            Texts{"GPU 3 of lab1 (GPU-a): usable yes -> no"});
  Device silent = gpu(0, Memory::gib(5), 115'000, false);
  silent.utilization_percent.reset();
  EXPECT_EQ(texts(seen.see(machine({silent}), kTwentieth)),
            Texts{"GPU 3 of lab1 (GPU-a): utilization 0% -> unknown"});
  EXPECT_EQ(texts(seen.see(machine({}), kTwentieth)),
            Texts{"GPU 3 of lab1 (GPU-a): present yes -> no"});
  EXPECT_EQ(texts(seen.see(machine({silent}), kTwentieth)),
            Texts{"GPU 3 of lab1 (GPU-a): present no -> yes"});
}

TEST(DeviceChanges, WithoutAThresholdEverythingIs) {
  DeviceChanges seen;
  EXPECT_TRUE(seen.see(machine({gpu(50, Memory::gib(4), 100'000)}), Share{}).empty());
  EXPECT_EQ(seen.see(machine({gpu(51, Memory::mib(4097), 100'001)}), Share{}).size(), 3U);
}

}  // namespace
}  // namespace gflow
