// SPDX-License-Identifier: Apache-2.0
#include "dra/slices.h"

#include <gtest/gtest.h>

#include <set>

namespace gflow::dra {
namespace {

using Json = nlohmann::json;

Device gpu(int index) {
  return {.index = index,
          .vendor = "nvidia",
          .model = "NVIDIA H100 80GB HBM3",
          .uuid = "GPU-8F4022ba-e0cb-1298-286e-225c953a7f0" + std::to_string(index),
          .pci_address = "00000000:3B:00.0",
          .numa_node = 1,
          .memory_total = Memory::mib(81559),
          .usable = true};
}

TEST(Slices, ADeviceSaysWhatItIsAndWhichPartsItIsGivenOutIn) {
  const Json devices = slice_devices({.devices = {gpu(0)}}, true);
  const Json expected = Json::parse(R"([{
    "name": "gpu-8f4022ba-e0cb-1298-286e-225c953a7f00",
    "allowMultipleAllocations": true,
    "attributes": {
      "index": {"int": 0},
      "model": {"string": "H100"},
      "numaNode": {"int": 1},
      "productName": {"string": "NVIDIA H100 80GB HBM3"},
      "resource.kubernetes.io/pciBusID": {"string": "0000:3b:00.0"},
      "uuid": {"string": "GPU-8F4022ba-e0cb-1298-286e-225c953a7f00"},
      "vendor": {"string": "nvidia"}},
    "capacity": {
      "memory": {"value": "81559Mi", "requestPolicy":
        {"default": "81559Mi", "validRange": {"min": "1Mi", "max": "81559Mi", "step": "1Mi"}}},
      "share": {"value": "1", "requestPolicy": {"default": "1", "validRange": {"min": "100u", "max": "1"}}}}}])");
  EXPECT_EQ(devices, expected);
}

TEST(Slices, PartsAreOnlyGivenOutWhereSomebodyIsHeldToThem) {
  Device amd = gpu(0);
  amd.vendor = "amd";
  Device unknown = gpu(1);
  unknown.memory_total.reset();
  const auto is_shared = [](const Device& device, bool can_share) {
    return slice_devices({.devices = {device}}, can_share)[0].contains("allowMultipleAllocations");
  };
  EXPECT_TRUE(is_shared(gpu(0), true));
  EXPECT_FALSE(is_shared(gpu(0), false));
  EXPECT_FALSE(is_shared(amd, true));
  EXPECT_FALSE(is_shared(unknown, true));
  const Json whole = slice_devices({.devices = {gpu(0)}}, false)[0].at("capacity");
  EXPECT_EQ(whole, Json::parse(R"({"memory": {"value": "81559Mi"}})"));
}

TEST(Slices, OneThatCannotBeUsedIsTaintedAndSaysWhy) {
  Device lost = gpu(0);
  lost.usable = false;
  lost.trouble = std::string(62, 'x') + "温度过高";
  const Json device = slice_devices({.devices = {lost}}, true)[0];
  EXPECT_EQ(device.at("taints"),
            Json::parse(R"([{"key": "gpu.gflow/unusable", "effect": "NoSchedule"}])"));
  EXPECT_EQ(device.at("attributes").at("trouble").at("string"), std::string(62, 'x'));
}

TEST(Slices, WhatIsNoAddressKubernetesKnowsIsNotTold) {
  Device device = gpu(0);
  for (const char* const address :
       {"", "3B:00.0", "00010000:3B:00.0", "0000:3b:0x.0", "card0-of-two"}) {
    device.pci_address = address;
    const Json attributes = slice_devices({.devices = {device}}, true)[0].at("attributes");
    EXPECT_FALSE(attributes.contains("resource.kubernetes.io/pciBusID")) << address;
  }
}

TEST(Slices, OneWithoutAUuidIsNotTold) {
  Device nameless = gpu(0);
  nameless.mig = MigDevice{.parent = "GPU-1", .profile = "3g.40gb"};
  EXPECT_EQ(slice_devices({.devices = {nameless}}, true).size(), 0U) << "nor a slice of MIG";
  nameless.mig.reset();
  nameless.uuid.clear();
  EXPECT_EQ(slice_devices({.devices = {nameless}}, true).size(), 0U);
  nameless.uuid = "--";
  EXPECT_EQ(device_name(nameless), "");
  nameless.uuid = "Card 1/2_";
  EXPECT_EQ(device_name(nameless), "card-1-2");
}

TEST(Slices, ANodeWithManyHasSeveralOfOneGeneration) {
  Machine machine;
  for (int i = 0; i < 130; ++i) {
    machine.devices.push_back(gpu(i));
    machine.devices.back().uuid = "GPU-" + std::to_string(i);
  }
  const auto slices = make_slices(slice_devices(machine, true), {"n1", "u1"}, 7);
  ASSERT_EQ(slices.size(), 3U);
  std::set<std::string> names;
  std::size_t devices = 0;
  for (const Json& one : slices) {
    EXPECT_EQ(one.at("spec").at("pool"),
              Json::parse(R"({"name": "n1", "generation": 7, "resourceSliceCount": 3})"));
    EXPECT_EQ(one.at("spec").at("nodeName"), "n1");
    EXPECT_EQ(one.at("metadata").at("ownerReferences")[0].at("uid"), "u1");
    names.insert(one.at("metadata").at("name").get<std::string>());
    devices += one.at("spec").at("devices").size();
  }
  EXPECT_EQ(names.size(), 3U);
  EXPECT_EQ(devices, 130U);
  EXPECT_TRUE(make_slices(Json::array(), {"n1", "u1"}, 1).empty());
}

}  // namespace
}  // namespace gflow::dra
