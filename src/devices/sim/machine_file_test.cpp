// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/machine_file.h"

#include <gtest/gtest.h>

#include "devices/sim/yaml.h"
#include "devices/trouble.h"
#include "os/file.h"

namespace gflow::devices::sim {
namespace {

Machine machine_from(const std::string& text) {
  const auto read = read_machine(text, "m.yaml");
  EXPECT_TRUE(read) << read.error().message;
  return read ? machine_of(*read, "sim:m.yaml") : Machine{};
}

TEST(MachineFile, Complete) {
  const Machine machine = machine_from(R"(
version: 1
driver: 550.54.15
cpus: 32
memory: 256G
defaults:
  model: RTX3090
  temperature_celsius: 40
gpus:
  - pci_address: "00000000:C1:00.0"
    uuid: GPU-second
    numa_node: 1
  - pci_address: 3b:00.0
    uuid: GPU-first
    numa_node: 0
    utilization_percent: 97
    power_watts: 310
    power_limit_watts: 320
    processes:
      - {pid: 4242, user: alice, name: python, memory: 20G}
      - {pid: 900, user: root, name: Xorg, memory: 100M, kind: graphics}
)");
  Device first{.index = 0,
               .vendor = "nvidia",
               .model = "NVIDIA GeForce RTX 3090",
               .uuid = "GPU-first",
               .pci_address = "0000:3b:00.0",
               .numa_node = 0,
               .memory_total = Memory::mib(24576),
               .memory_used = Memory::mib(8 + 20 * 1024 + 100),
               .utilization_percent = 97,
               .temperature_celsius = 40,
               .power_milliwatts = 310'000,
               .power_limit_milliwatts = 320'000,
               .processes = {{4242, "alice", "python", Memory::gib(20)}},
               .trouble = ""};
  Device second = first;
  second.index = 1;
  second.uuid = "GPU-second";
  second.pci_address = "0000:c1:00.0";
  second.numa_node = 1;
  second.memory_used = Memory::mib(8);
  second.utilization_percent = 0;
  second.power_milliwatts = 25'000;
  second.power_limit_milliwatts = 350'000;
  second.processes.clear();
  Topology pcie = plain_topology(2, PathClass::Sys);
  pcie.speeds = speeds_of_model(first.model);
  pcie.numa = {0, 1};
  EXPECT_EQ(machine,
            (Machine{.source = "sim:m.yaml",
                     .driver = "550.54.15",
                     .cpus = 32,
                     .memory = Memory::gib(256),
                     .devices = {first, second},
                     .topology = pcie}));
}

TEST(MachineFile, WhatADeviceDoesNotGiveIsNotZero) {
  const Machine machine = machine_from(R"(
gpus:
  - model: H100
    unsupported: [utilization, power]
  - model: H100
    state: lost
  - model: H100
    state: mig
)");
  const Device& partial = machine.devices.at(0);
  EXPECT_EQ(partial.utilization_percent, std::nullopt);
  EXPECT_EQ(partial.power_milliwatts, std::nullopt);
  EXPECT_EQ(partial.temperature_celsius, 34);
  EXPECT_EQ(partial.trouble, "no utilization, power (Not Supported)");
  EXPECT_TRUE(partial.usable);
  const Device& gone = machine.devices.at(1);
  EXPECT_EQ(gone.memory_used, std::nullopt);
  EXPECT_EQ(gone.memory_total, Memory::mib(81559));
  EXPECT_EQ(gone.trouble, kLostTrouble);
  EXPECT_FALSE(gone.usable);
  EXPECT_EQ(machine.devices.at(2).trouble, kMigTrouble);
  EXPECT_FALSE(machine.devices.at(2).usable);
  EXPECT_EQ(machine.cpus, std::nullopt);
}

TEST(MachineFile, AModelOfOnesOwnNeedsItsMemory) {
  const Machine machine = machine_from("gpus: [{model: Toaster, memory_total: 3G, count: 2}]");
  ASSERT_EQ(machine.devices.size(), 2U);
  EXPECT_EQ(machine.devices[1].model, "Toaster");
  EXPECT_EQ(machine.devices[1].memory_total, Memory::gib(3));
  EXPECT_EQ(machine.devices[1].temperature_celsius, std::nullopt);
}

TEST(MachineFile, NoGpusAtAll) { EXPECT_TRUE(machine_from("gpus: []").devices.empty()); }

TEST(MachineFile, FaultsOfTheDriver) {
  const auto read = read_machine(
      "gpus: []\n"
      "nvml: {process_entry_bytes: 16, calls: {nvmlInit_v2: hang, nvmlShutdown: abort, nvmlX: 15}}",
      "m.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->nvml.process_entry_bytes, 16);
  ASSERT_EQ(read->nvml.faults.size(), 3U);
  EXPECT_EQ(read->nvml.faults[0].kind, CallFault::Kind::Hang);
  EXPECT_EQ(read->nvml.faults[1].kind, CallFault::Kind::Abort);
  EXPECT_EQ(read->nvml.faults[2].code, 15);
}

TEST(MachineFile, Errors) {
  struct Case {
    std::string text;
    const char* says;
  };
  const std::string gpu = "gpus:\n- model: H100\n  ";
  const Case cases[] = {
      {"", "m.yaml:1: has to be a map with version, name, driver, cpus"},
      {"[]", "m.yaml:1: has to be a map"},
      {"cpus: 4", "m.yaml:1: gpus: is needed"},
      {"gpus: 3", "m.yaml:1: gpus: has to be a list"},
      {"gpus: [3]", "m.yaml:1: gpus[0]: has to be a map with model, count"},
      {"gpus: []\ngpu: []", "m.yaml:2: gpu: unknown key; did you mean 'gpus'?"},
      {"gpus: []\nxylophone: 1",
       "m.yaml:2: xylophone: unknown key; the keys are version, name, driver"},
      {"gpus: []\ngpus: []", "m.yaml:2: 'gpus' is given twice"},
      {"gpus: []\nversion: 2", "m.yaml:2: version: '2' is none of 1"},
      {"gpus: []\ncpus: 0", "m.yaml:2: cpus: '0' is not a whole number from 1 to 65536"},
      {"gpus: []\nmemory: much", "m.yaml:2: memory: "},
      {"gpus:\n- count: 2", "m.yaml:2: gpus[0].model: is needed"},
      {gpu + "memry_total: 3G",
       "m.yaml:3: gpus[0].memry_total: unknown key; did you mean "
       "'memory_total'?"},
      {"gpus:\n- model: H10", "m.yaml:2: gpus[0].model: unknown GPU model 'H10', did you mean"},
      {gpu + "utilization_percent: 101", "m.yaml:3: gpus[0].utilization_percent: '101' is not a"},
      {gpu + "temperature_celsius: -1", "m.yaml:3: gpus[0].temperature_celsius: '-1' is not"},
      {gpu + "power_watts: 70.5", "m.yaml:3: gpus[0].power_watts: '70.5' is not a whole number"},
      {gpu + "device_nodes: [195:0-2]", "m.yaml:3: gpus[0].device_nodes: '195:0-2' is not of"},
      {gpu + "pci_address: 1", "m.yaml:3: gpus[0].pci_address: '1' is not of the form"},
      {gpu + "vendor: nvdia", "m.yaml:3: gpus[0].vendor: 'nvdia' is none of nvidia, amd, intel"},
      {gpu + "uuid: \"a\\nb\"", "m.yaml:3: gpus[0].uuid: has to be 1 to 80 visible characters"},
      {gpu + "mig: [3g]",
       "m.yaml:3: gpus[0].mig[0].profile: '3g' is no MIG profile, such as 3g.20gb"},
      {gpu + "mig: [{profile: 1g.10gb, gi: 2}]", "m.yaml:3: gpus[0].mig[0].gi: unknown key; "},
      {gpu + "mig: [4g.40gb, 4g.40gb]",
       "m.yaml:3: gpus[0].mig: a GPU is cut into 7 slices at most"},
      {gpu + "mig: [{profile: 1g.10gb, gpu_instance: 2}, {profile: 1g.10gb, gpu_instance: 2, "
             "compute_instance: 0}]",
       "m.yaml:3: gpus[0].mig: two slices have the same instances"},
      {gpu + "state: broken", "m.yaml:3: gpus[0].state: 'broken' is none of ok, lost, mig"},
      {gpu + "unsupported: [fan]", "m.yaml:3: gpus[0].unsupported: no reading 'fan'; there are "},
      {gpu + "count: 257", "m.yaml:3: gpus[0].count: '257' is not a whole number from 1 to 256"},
      {gpu + "count: 256\n- model: T4", "m.yaml:1: gpus: at most 256 GPUs"},
      {gpu + "count: 2\n  uuid: GPU-1",
       "m.yaml:3: gpus[0].count: GPUs with a uuid, pci_address or"},
      {gpu + "memory_used: 1T", "m.yaml:3: gpus[0].memory_used: 1T used is more than the GPU's"},
      {gpu + "uuid: GPU-1\n- {model: T4, uuid: GPU-1}", "m.yaml:1: gpus: two GPUs have the UUID"},
      {gpu + "pci_address: 3b:00.0\n- {model: T4, pci_address: 0000:3B:00.0}",
       "m.yaml:1: gpus: two GPUs have the PCI address 0000:3b:00.0"},
      {gpu + "processes:\n  - {user: a}", "m.yaml:4: gpus[0].processes[0].pid: is needed"},
      {gpu + "processes:\n  - {pid: 0}", "m.yaml:4: gpus[0].processes[0].pid: '0' is not"},
      {gpu + "processes:\n  - {pid: 1, kind: x}", "m.yaml:4: gpus[0].processes[0].kind: 'x' is"},
      {gpu + "processes:\n  - {pid: 1, memory: 90G}", "m.yaml:3: gpus[0].processes: 90G used is"},
      {"gpus: []\ndefaults: {mode: x}", ""},
      {"gpus: [{}]\ndefaults: {mode: x}", "m.yaml:2: defaults.mode: unknown key; did you mean"},
      {"gpus: []\nnvml: {calls: {x: 1}}", "m.yaml:2: nvml.calls.x: is not the name of an NVML"},
      {"gpus: []\nnvml: {calls: {nvmlX: 0}}", "m.yaml:2: nvml.calls.nvmlX: has to be hang, abort"},
      {"gpus: [", "m.yaml:1: "},
      {"gpus: []\n\tx: 1", "m.yaml:2: "},
      {"a: \"\xff\"", "m.yaml:1: not UTF-8 text"},
      {"gpus: []\n\"\x1b\": 1", "m.yaml:2: "},
      {std::string(2 << 20, 'a'), "m.yaml:1: larger than 1M"},
      {std::string(100'000, '['), "m.yaml:1: "},
      {"gpus: [[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]", "m.yaml:1: too deeply nested"},
  };
  for (const Case& c : cases) {
    const std::string shown = c.text.substr(0, 80);
    const auto read = read_machine(c.text, "m.yaml");
    if (*c.says == '\0') {
      EXPECT_TRUE(read) << shown << read.error().message;
      continue;
    }
    ASSERT_FALSE(read) << shown;
    EXPECT_EQ(read.error().code, Code::Usage);
    EXPECT_TRUE(read.error().message.starts_with(c.says)) << shown << "\n" << read.error().message;
  }
}

TEST(MachineFile, AliasesCountAsOftenAsTheyAreUsed) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int at = 1; at < 10; ++at) {
    const std::string before = "*a" + std::to_string(at - 1);
    bomb += "a" + std::to_string(at) + ": &a" + std::to_string(at) + " [";
    for (int times = 0; times < 10; ++times) bomb += (times == 0 ? "" : ", ") + before;
    bomb += "]\n";
  }
  const auto read = read_machine(bomb, "m.yaml");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("too many values"), std::string::npos);
}

/// The file that docs/format/machine.md shows in full is a machine file.
TEST(MachineFile, TheExampleOfTheDocumentWorks) {
  const auto text = os::read_file(std::string(GFLOW_SOURCE_DIR) + "/docs/format/machine.md");
  ASSERT_TRUE(text);
  const auto start = text->find("```yaml\n");
  ASSERT_NE(start, std::string::npos);
  const auto begin = start + 8;
  const auto read =
      read_machine(text->substr(begin, text->find("```", begin) - begin), "machine.md");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->devices.size(), 6U);
}

}  // namespace
}  // namespace gflow::devices::sim
