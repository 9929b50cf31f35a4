// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/machine.h"

#include <gtest/gtest.h>

#include "devices/trouble.h"

namespace gflow::devices::nvml {
namespace {

DeviceReport gpu(const std::string& uuid, const std::string& address) {
  DeviceReport report;
  report.name = "NVIDIA A40";
  report.uuid = uuid;
  report.pci_address = address;
  report.memory_total = Memory::mib(46068);
  report.memory_used = Memory::gib(1);
  report.utilization_percent = 5;
  return report;
}

Report two() {
  return {"", "590.48.01", {gpu("GPU-a", "0000:1b:00.0"), gpu("GPU-b", "0000:3b:00.0")}, {}};
}

std::string summary(const Machine& machine) {
  std::string all;
  for (const Device& device : machine.devices) {
    all += std::to_string(device.index) + " " + device.uuid + (device.usable ? "" : " unusable") +
           "; ";
  }
  return all + machine.note;
}

TEST(NvmlMachine, IndexStaysWithTheDevice) {
  const Machine start = machine_after({}, two());
  EXPECT_EQ(summary(start), "0 GPU-a; 1 GPU-b; ");

  Report one_gone = two();
  one_gone.devices.erase(one_gone.devices.begin());
  one_gone.unreachable = {"GPU is lost"};
  const Machine after = machine_after(start, one_gone);
  EXPECT_EQ(summary(after), "0 GPU-a unusable; 1 GPU-b; ");
  EXPECT_EQ(after.devices[0].trouble, kLostTrouble);
  EXPECT_EQ(after.devices[0].memory_used, std::nullopt);
  EXPECT_EQ(after.devices[0].memory_total, Memory::mib(46068));

  Report one_more = two();
  one_more.devices.insert(one_more.devices.begin(), gpu("GPU-c", "0000:01:00.0"));
  EXPECT_EQ(summary(machine_after(after, one_more)), "0 GPU-a; 1 GPU-b; 2 GPU-c; ");
}

TEST(NvmlMachine, LinksOfALostGpuAreKept) {
  Report linked = two();
  linked.devices[0].peers = {{"0000:3b:00.0", PathClass::Node, 4}};
  linked.devices[1].peers = {{"0000:1b:00.0", PathClass::Node, 4}};
  linked.devices[0].numa_node = 1;
  linked.numa_cpus = {{1, "0-15"}};
  const Machine start = machine_after({}, linked);
  EXPECT_EQ(start.topology.links_between(0, 1), 4);
  EXPECT_EQ(start.topology.pair_speed(1, 0), 48'000);
  EXPECT_EQ(start.topology.numa, (std::vector<std::optional<int>>{1, std::nullopt}));

  Report one_gone = two();
  one_gone.devices.erase(one_gone.devices.begin());
  const Topology after = machine_after(start, one_gone).topology;
  EXPECT_EQ(after.links_between(0, 1), 4);
  EXPECT_EQ(after.path_between(0, 1), PathClass::Node);
  EXPECT_EQ(machine_after({}, two()).topology, Topology{});  // nobody told
}

TEST(NvmlMachine, AGpuThatCannotBeOpenedIsSaid) {
  Report report = two();
  report.unreachable = {"Insufficient Permissions"};
  EXPECT_EQ(machine_after({}, report).note,
            "1 more in the machine that the driver cannot open: Insufficient Permissions");
  EXPECT_EQ(machine_after({}, {"", "1", {}, {}}).note, "the NVIDIA driver finds no GPU");
}

TEST(NvmlMachine, ADyingGpuKeepsItsIdentityAndNoReading) {
  const Machine start = machine_after({}, two());
  Report report = two();
  report.devices[1].name.clear();
  report.devices[1].memory_total.reset();
  report.devices[1].fatal = "GPU requires reset";
  const Device device = machine_after(start, report).devices[1];
  EXPECT_EQ(device.model, "NVIDIA A40");
  EXPECT_EQ(device.memory_total, Memory::mib(46068));
  EXPECT_EQ(device.utilization_percent, std::nullopt);
  EXPECT_EQ(device.trouble, "the driver says: GPU requires reset");
  EXPECT_FALSE(device.usable);
}

Report one_cut() {
  Report report = two();
  report.devices[0].mig = true;
  for (const char* uuid : {"MIG-1", "MIG-2"}) {
    SliceReport slice{.name = "NVIDIA A40 MIG 3g.20gb", .uuid = uuid, .profile = "3g.20gb"};
    slice.memory_total = Memory::gib(20);
    report.devices[0].slices.push_back(slice);
  }
  return report;
}

TEST(NvmlMachine, AGpuThatIsCutIsItsSlices) {
  const Machine cut = machine_after({}, one_cut());
  EXPECT_EQ(summary(cut), "0 MIG-1; 1 MIG-2; 2 GPU-b; ");
  EXPECT_EQ(cut.devices[0].mig, (MigDevice{"GPU-a", "3g.20gb", 0, 0}));
  EXPECT_EQ(cut.devices[0].utilization_percent, std::nullopt);
  EXPECT_EQ(summary(machine_after(machine_after({}, two()), one_cut())),
            "0 GPU-b; 1 MIG-1; 2 MIG-2; ");
  EXPECT_EQ(summary(machine_after(cut, two())), "0 GPU-b; 1 GPU-a; ");
  Report other = one_cut();
  other.devices[0].slices[0].uuid = "MIG-3";
  EXPECT_EQ(summary(machine_after(cut, other)), "0 MIG-2; 1 GPU-b; 2 MIG-3; ");
  other.devices[0].slices[1].profile = other.devices[0].slices[1].name = "";
  EXPECT_FALSE(machine_after(cut, other).devices[0].usable) << "nobody can ask for it";
}

TEST(NvmlMachine, SlicesOfALostGpuStay) {
  const Machine cut = machine_after({}, one_cut());
  Report gone = one_cut();
  gone.devices.erase(gone.devices.begin());
  gone.unreachable = {"GPU is lost"};
  const Machine after = machine_after(cut, gone);
  EXPECT_EQ(summary(after), "0 MIG-1 unusable; 1 MIG-2 unusable; 2 GPU-b; ");
  EXPECT_EQ(after.devices[0].trouble, kSliceLostTrouble);
  EXPECT_EQ(machine_after(after, one_cut()), cut);
  Report dying = one_cut();
  dying.devices[0].fatal = "GPU requires reset";
  dying.devices[0].uuid.clear();
  dying.devices[0].slices.clear();
  EXPECT_EQ(summary(machine_after(cut, dying)), "0 MIG-1 unusable; 1 MIG-2 unusable; 2 GPU-b; ");
  EXPECT_EQ(summary(machine_after({}, dying)), "0  unusable; 1 GPU-b; ");
  EXPECT_EQ(machine_after(machine_stale(cut, "no answer"), one_cut()), cut);
}

TEST(NvmlMachine, ASliceIsOpenedByTheNodesOfItsGpuAndItsOwn) {
  Report report = one_cut();
  report.gpu_nodes = {{195, 0, 247}};
  report.devices[0].nodes = {DeviceNodes::one(195, 1)};
  report.devices[0].slices[0].nodes = {DeviceNodes::one(507, 12)};
  const Machine cut = machine_after({}, report);
  EXPECT_EQ(cut.gpu_nodes.at("nvidia"), report.gpu_nodes);
  EXPECT_EQ(cut.devices[0].nodes,
            (std::vector{DeviceNodes::one(195, 1), DeviceNodes::one(507, 12)}));
  EXPECT_TRUE(cut.devices[1].nodes.empty()) << "by its GPU's alone it would open any slice";
  report.devices[0].fatal = "GPU requires reset";
  report.devices[0].slices.clear();
  EXPECT_EQ(machine_after(cut, report).devices[0].nodes, cut.devices[0].nodes);
}

/// A job that is launched meanwhile would be kept from no GPU for all its life.
TEST(NvmlMachine, WhatOpensAGpuIsNotForgottenWhereAReadingDoesNotTellIt) {
  Report report = one_cut();
  report.devices[0].nodes = {DeviceNodes::one(195, 1)};
  report.devices[0].slices[0].nodes = {DeviceNodes::one(507, 12)};
  report.devices[1].nodes = {DeviceNodes::one(195, 0)};
  const Machine known = machine_after({}, report);
  Report silent = report;
  for (DeviceReport& gpu : silent.devices) gpu.nodes.clear();
  silent.devices[0].slices[0].nodes.clear();
  EXPECT_EQ(machine_after(known, silent), known);
  report.devices[1].nodes = {DeviceNodes::one(195, 2)};
  EXPECT_EQ(machine_after(known, report).devices[2].nodes, report.devices[1].nodes);
}

TEST(NvmlMachine, OnlyComputeProcessesCount) {
  Report report = two();
  report.devices[0].processes = {{{900, "root", "Xorg", Memory::mib(100)}, ProcessKind::Graphics},
                                 {{901, "eve", "python", Memory::gib(1)}, ProcessKind::Compute}};
  const Machine machine = machine_after({}, report);
  ASSERT_EQ(machine.devices[0].processes.size(), 1U);
  EXPECT_EQ(machine.devices[0].processes[0].name, "python");
}

TEST(NvmlMachine, StaleIsNotZero) {
  const Machine start = machine_after({}, two());
  const Machine stale = machine_stale(start, "no answer");
  EXPECT_EQ(summary(stale), "0 GPU-a unusable; 1 GPU-b unusable; no answer");
  EXPECT_EQ(stale.devices[0].utilization_percent, std::nullopt);
  EXPECT_EQ(stale.devices[0].memory_used, std::nullopt);
  EXPECT_EQ(stale.devices[0].model, "NVIDIA A40");
  EXPECT_EQ(machine_after(stale, two()), start);
}

}  // namespace
}  // namespace gflow::devices::nvml
