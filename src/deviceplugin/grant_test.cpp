// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/grant.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gflow::deviceplugin {
namespace {

using Json = nlohmann::json;
using kube::ListedDevice;

Device gpu(int index, const std::string& uuid) {
  return {.index = index,
          .vendor = "nvidia",
          .model = "NVIDIA H100",
          .uuid = uuid,
          .memory_total = Memory::gib(80)};
}

Machine machine_of(const std::vector<std::string>& uuids) {
  Machine machine;
  for (const std::string& uuid : uuids) {
    machine.devices.push_back(gpu(static_cast<int>(machine.devices.size()), uuid));
  }
  return machine;
}

std::vector<std::string> uuids_of(const std::vector<ListedDevice>& devices) {
  std::vector<std::string> uuids;
  for (const ListedDevice& one : devices) {
    uuids.push_back(std::to_string(one.index) + " " + one.uuid +
                    (one.trouble.empty() ? "" : ": " + one.trouble));
  }
  return uuids;
}

TEST(ListDevices, AnIndexIsTheSameDeviceWhateverComesAndGoes) {
  std::vector<ListedDevice> list = list_devices(machine_of({"a", "b", "c"}), {});
  EXPECT_EQ(uuids_of(list), (std::vector<std::string>{"0 a", "1 b", "2 c"}));
  list = list_devices(machine_of({"a", "c"}), list);
  const std::string gone = "1 b: it is not in the machine any more";
  EXPECT_EQ(uuids_of(list), (std::vector<std::string>{"0 a", gone, "2 c"}));
  list = list_devices(machine_of({"d", "c", "a"}), list);
  EXPECT_EQ(uuids_of(list), (std::vector<std::string>{"0 a", gone, "2 c", "3 d"}));
  Machine back = machine_of({"a", "b"});
  back.devices[1].usable = false;
  back.devices[1].trouble = "it is hot";
  list = list_devices(back, list);
  EXPECT_EQ(list[1].trouble, "it is hot");
  EXPECT_EQ(list[1].index, 1);
}

TEST(ListDevices, SlicesOfMigAreLeftToOthers) {
  Machine machine = machine_of({"a", "b"});
  machine.devices[0].mig = MigDevice{"GPU-0", "3g.40gb", 1, 0};
  EXPECT_EQ(uuids_of(list_devices(machine, {})), (std::vector<std::string>{"0 b"}));
}

TEST(ListDevices, OnesThatCannotBeToldApartAreNotListed) {
  EXPECT_TRUE(list_devices(machine_of({"", ""}), {}).empty());
}

/// A pod whose containers ask for these, by name.
Json pod_of(const std::vector<std::pair<std::string, std::map<std::string, int>>>& containers,
            const std::string& asked,
            const Json& devices) {
  Json made = {{"metadata",
                {{"namespace", "default"},
                 {"name", "train"},
                 {"uid", "u1"},
                 {"annotations",
                  {{"gflow/allocation", Json{{"node", "n1"}, {"devices", devices}}.dump()}}}}},
               {"spec",
                {{"nodeName", "n1"},
                 {"schedulerName", "gflow"},
                 {"containers", Json::array()},
                 {"initContainers", Json::array()}}}};
  if (!asked.empty()) made["metadata"]["annotations"]["gflow/gpu"] = asked;
  for (const auto& [name, limits] : containers) {
    Json container = {{"name", name}};
    for (const auto& [resource, count] : limits) {
      container["resources"]["limits"][resource] = std::to_string(count);
    }
    const bool is_beside = name.starts_with("beside");
    if (is_beside) container["restartPolicy"] = "Always";
    made["spec"][is_beside ? "initContainers" : "containers"].push_back(container);
  }
  return made;
}

Json chosen(int index, int parts = 10000, std::int64_t memory = 0) {
  Json one = {{"resource", "nvidia.com/gpu"}, {"index", index}, {"share_parts", parts}};
  if (memory > 0) one["memory_bytes"] = memory;
  return one;
}

struct World {
  Known known{"n1", machine_of({"a", "b", "c", "d"}), {}};
  World() { known.inventory = list_devices(known.machine, {}); }

  /// "a c" of the devices it gets, or why it gets none.
  [[nodiscard]] std::string given(const Json& pod,
                                  const std::string& container,
                                  std::string_view resource) const {
    const auto grant = grant_of(pod, {"default", "train", container}, resource, known);
    if (!grant) return grant.error().message;
    std::string uuids;
    for (const DeviceGrant& one : grant->devices) uuids += (uuids.empty() ? "" : " ") + one.uuid;
    return uuids;
  }
};

TEST(Grant, WholeGpusAreDealtInTheOrderOfContainers) {
  const World world;
  const std::map<std::string, int> one{{"nvidia.com/gpu", 1}};
  const std::map<std::string, int> two{{"nvidia.com/gpu", 2}};
  const Json pod = pod_of({{"main", two}, {"side", one}, {"beside", one}, {"none", {}}},
                          "",
                          Json::array({chosen(0), chosen(1), chosen(2), chosen(3)}));
  EXPECT_EQ(world.given(pod, "beside", "nvidia.com/gpu"), "a");
  EXPECT_EQ(world.given(pod, "main", "nvidia.com/gpu"), "b c");
  EXPECT_EQ(world.given(pod, "side", "nvidia.com/gpu"), "d");
  EXPECT_EQ(world.given(pod, "none", "nvidia.com/gpu"), "");
  EXPECT_TRUE(world.given(pod, "nobody", "nvidia.com/gpu").contains("no container of that name"));
}

TEST(Grant, AContainerThatTakesTheAllocationHasAllOfIt) {
  const World world;
  const Json pod =
      pod_of({{"main", {{"gflow/allocation", 1}}}}, "2", Json::array({chosen(1), chosen(3)}));
  EXPECT_EQ(world.given(pod, "main", kAllocationResource), "b d");
}

TEST(Grant, APartIsWhatWasChosenAndTheMostIsWhatWasAskedFor) {
  const World world;
  const Json pod = pod_of({{"main", {{"gflow/allocation", 1}}}, {"log", {}}},
                          "8G,0.3..0.7",
                          Json::array({chosen(2, 3000, 8LL << 30)}));
  const auto grant = grant_of(pod, {"default", "train", "main"}, kAllocationResource, world.known);
  ASSERT_TRUE(grant) << grant.error().message;
  ASSERT_EQ(grant->devices.size(), 1U);
  const DeviceGrant& device = grant->devices.front();
  EXPECT_EQ(device.uuid, "c");
  EXPECT_EQ(device.share, Share{3000});
  EXPECT_EQ(device.share_limit, Share{7000});
  EXPECT_EQ(device.memory, Memory::gib(8));
  EXPECT_EQ(grant->request.mode, GpuMode::Fraction);
}

TEST(Grant, WhatCannotBeGivenIsSaid) {
  World world;
  const std::map<std::string, int> one{{"nvidia.com/gpu", 1}};
  const std::map<std::string, int> all{{"gflow/allocation", 1}};
  const Json first = Json::array({chosen(0)});

  Json of_others = pod_of({{"main", one}}, "", first);
  of_others["metadata"]["annotations"].erase("gflow/allocation");
  of_others["spec"]["schedulerName"] = "default-scheduler";
  EXPECT_EQ(world.given(of_others, "main", "nvidia.com/gpu"),
            "no GPU was chosen for it: pods that use GPUs of this node need gflow-kube as their "
            "scheduler, or as an extender of it, and this one has 'default-scheduler'");

  Json of_another_node = pod_of({{"main", one}}, "", first);
  of_another_node["spec"]["nodeName"] = "n2";
  EXPECT_EQ(world.given(of_another_node, "main", "nvidia.com/gpu"),
            "the pod of that name is on 'n2' by now");
  of_another_node["spec"]["nodeName"] = "n1";
  of_another_node["metadata"]["annotations"]["gflow/allocation"] = R"({"node":"n2","devices":[]})";
  EXPECT_TRUE(world.given(of_another_node, "main", "nvidia.com/gpu").contains("no GPU was chosen"));

  const Json half = Json::array({chosen(0, 5000, 8LL << 30)});
  Json negative = half;
  negative[0]["memory_bytes"] = -1;
  for (const auto& [asked, devices] : std::vector<std::pair<std::string, Json>>{
           {"1", half}, {"0.25", half}, {"0.5", first}, {"0.5", negative}}) {
    EXPECT_EQ(world.given(pod_of({{"main", all}}, asked, devices), "main", kAllocationResource),
              "gflow/allocation is not what gflow/gpu asks for: make the pod anew")
        << asked;
  }

  EXPECT_EQ(
      world.given(pod_of({{"main", {{"nvidia.com/gpu", 2}}}}, "", first), "main", "nvidia.com/gpu"),
      "it asks for 2 nvidia.com/gpu, and gflow-kube gave its pod 1");
  EXPECT_TRUE(world
                  .given(pod_of({{"a", all}, {"b", all}}, "0.5", Json::array({chosen(0, 5000)})),
                         "a",
                         kAllocationResource)
                  .contains("a part of a GPU is one container's"));
  EXPECT_EQ(
      world.given(pod_of({{"main", one}}, "", Json::array({chosen(9)})), "main", "nvidia.com/gpu"),
      "its GPU nvidia.com/gpu/9 is not in this machine: delete the pod, and it gets another "
      "one");
  world.known.machine.devices[0].usable = false;
  world.known.machine.devices[0].trouble = "the driver lost this GPU";
  EXPECT_EQ(world.given(pod_of({{"main", one}}, "", first), "main", "nvidia.com/gpu"),
            "its GPU nvidia.com/gpu/0 cannot be used: the driver lost this GPU");
  EXPECT_TRUE(world.given(Json(), "main", "nvidia.com/gpu").contains("by now"));
}

}  // namespace
}  // namespace gflow::deviceplugin
