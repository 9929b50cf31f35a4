// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "engine/step.h"

namespace gflow::engine {
namespace {

Machine with_gpu() {
  Machine machine;
  machine.name = "n1";
  machine.cpus = 4;
  Device device;
  device.temperature_celsius = 50;
  device.utilization_percent = 10;
  device.power_milliwatts = 100'000;
  device.memory_total = Memory::gib(24);
  device.memory_used = Memory{};
  machine.devices = {device};
  return machine;
}

class Readings : public testing::Test {
 protected:
  /// The revision once this is told.
  std::uint64_t after(const Machine& machine) {
    (void)step(state_, event::NodesChanged{{machine}}, Now{});
    EXPECT_EQ(state_.check(), "");
    EXPECT_EQ(state_.nodes().at("n1").machine, machine) << "it is shown as it is";
    return state_.revision();
  }

  State state_{Policy{}, "boot"};
};

TEST_F(Readings, WhatIsOnlyShownIsNoNews) {
  Machine machine = with_gpu();
  const std::uint64_t before = after(machine);
  machine.devices[0].temperature_celsius = 51;
  EXPECT_EQ(after(machine), before);
  machine.devices[0].utilization_percent = 100;
  machine.devices[0].power_milliwatts = 300'000;
  EXPECT_EQ(after(machine), before);
}

TEST_F(Readings, WhatDecidesIsNews) {
  Machine machine = with_gpu();
  std::uint64_t before = after(machine);
  const auto is_news = [&] { return std::exchange(before, after(machine)) != before; };
  machine.devices[0].memory_used = Memory::gib(1);
  EXPECT_TRUE(is_news());
  machine.devices[0].processes.emplace_back().pid = 7;
  EXPECT_TRUE(is_news());
  machine.devices[0].trouble = "it is hot";
  EXPECT_TRUE(is_news());
  machine.devices.push_back(machine.devices[0]);
  machine.devices[1].index = 1;
  EXPECT_TRUE(is_news());
  EXPECT_FALSE(is_news());
}

}  // namespace
}  // namespace gflow::engine
