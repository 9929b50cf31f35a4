// SPDX-License-Identifier: Apache-2.0
#include "devices/device_indices.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gflow::devices {
namespace {

Machine machine_with(const std::vector<std::string>& uuids) {
  Machine machine;
  for (const std::string& uuid : uuids) {
    Device device;
    device.index = static_cast<int>(machine.devices.size());
    device.uuid = uuid;
    device.memory_used = Memory::mib(1);
    machine.devices.push_back(std::move(device));
  }
  return machine;
}

Device held(int index, const std::string& uuid) {
  Device device;
  device.index = index;
  device.uuid = uuid;
  return device;
}

/// "0 a, 1 b!": index and UUID of each device; '!' of one that cannot be used.
std::string text_of(const Machine& machine) {
  std::string text;
  for (const Device& device : machine.devices) {
    if (!text.empty()) text += ", ";
    text += std::to_string(device.index) + " " + device.uuid + (device.usable ? "" : "!");
  }
  return text;
}

auto holding(std::set<int> indices) {
  return [indices = std::move(indices)](int index) { return indices.contains(index); };
}

TEST(DeviceIndices, ADeviceKeepsItsIndexWhenOneBeforeItGoes) {
  DeviceIndices indices;
  EXPECT_EQ(text_of(indices.applied_to(machine_with({"a", "b"}), holding({1}))), "0 a, 1 b");
  EXPECT_EQ(text_of(indices.applied_to(machine_with({"b"}), holding({1}))), "1 b");
  EXPECT_FALSE(indices.has_missing());
  // The place that became free is given to a new one, and one that comes back is new.
  EXPECT_EQ(text_of(indices.applied_to(machine_with({"c", "b", "a"}), holding({1}))),
            "0 c, 1 b, 2 a");
}

TEST(DeviceIndices, OneThatIsHeldAndNotThereStaysUntilItIsNotHeld) {
  DeviceIndices indices;
  (void)indices.applied_to(machine_with({"a", "b"}), holding({0}));
  const Machine without = indices.applied_to(machine_with({"b"}), holding({0}));
  EXPECT_EQ(text_of(without), "0 a!, 1 b");
  EXPECT_TRUE(indices.has_missing());
  EXPECT_NE(without.devices[0].trouble.find("not in the machine any more"), std::string::npos);
  EXPECT_FALSE(without.devices[0].memory_used);
  EXPECT_EQ(text_of(indices.applied_to(machine_with({"a", "b"}), holding({0}))), "0 a, 1 b");
  (void)indices.applied_to(machine_with({"b"}), holding({0}));
  EXPECT_EQ(text_of(indices.applied_to(machine_with({"b"}), holding({}))), "1 b");
  EXPECT_FALSE(indices.has_missing());
}

TEST(DeviceIndices, WhatWasHeldBeforeARestartIsFoundAgain) {
  struct Case {
    std::vector<Device> held;
    std::vector<std::string> there;
    std::string is;
  };
  const Case cases[] = {
      {{held(1, "b")}, {"b"}, "1 b"},
      {{held(1, "b")}, {"b", "c"}, "0 c, 1 b"},
      {{held(1, "b")}, {"a"}, "0 a, 1 b!"},
      {{held(0, "a")}, {"b"}, "0 a!, 1 b"},
      {{held(2, "c")}, {}, "2 c!"},
      {{held(0, "b"), held(1, "a")}, {"a", "b"}, "0 b, 1 a"},
      // Two jobs share b; what contradicts itself is counted by the source.
      {{held(1, "b"), held(1, "b")}, {"b"}, "1 b"},
      {{held(1, "b"), held(1, "a")}, {"a", "b"}, "0 a, 1 b"},
      {{held(1, "")}, {"a", "b"}, "0 a, 1 b"},
  };
  for (const Case& c : cases) {
    DeviceIndices indices(c.held);
    EXPECT_EQ(text_of(indices.applied_to(machine_with(c.there), holding({0, 1, 2}))), c.is);
  }
}

TEST(DeviceIndices, DevicesWithoutUuidAreCountedByTheirSource) {
  DeviceIndices indices;
  (void)indices.applied_to(machine_with({"", ""}), holding({0, 1}));
  EXPECT_EQ(text_of(indices.applied_to(machine_with({""}), holding({0, 1}))), "0 ");
}

TEST(DeviceIndices, LinksGoWithTheirDevices) {
  Machine machine = machine_with({"a", "b", "c"});
  machine.topology = plain_topology(3, PathClass::Sys);
  machine.topology.numa = {0, 0, 1};
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(1, 0)}) {
    machine.topology.links[machine.topology.at(a, b)] = 4;
    machine.topology.paths[machine.topology.at(a, b)] = PathClass::Pix;
  }
  DeviceIndices indices({held(3, "a")});
  const Machine moved = indices.applied_to(machine, holding({3}));
  ASSERT_EQ(text_of(moved), "1 b, 2 c, 3 a");
  ASSERT_TRUE(check(moved.topology)) << check(moved.topology).error().message;
  ASSERT_EQ(moved.topology.gpus, 4);
  EXPECT_EQ(moved.topology.links_between(3, 1), 4);
  EXPECT_EQ(moved.topology.path_between(1, 3), PathClass::Pix);
  EXPECT_EQ(moved.topology.links_between(2, 1), 0);
  EXPECT_EQ(moved.topology.numa[2], 1);
  EXPECT_EQ(moved.topology.numa[3], 0);
}

}  // namespace
}  // namespace gflow::devices
