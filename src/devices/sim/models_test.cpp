// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "devices/sim/catalogue.h"
#include "devices/sim/machine_file.h"

namespace gflow::devices::sim {
namespace {

std::string models_of(const SimMachine& machine) {
  std::string all;
  for (const SimDevice& one : machine.devices) {
    all += (all.empty() ? "" : " | ") + one.device.model;
  }
  return all;
}

TEST(Models, Specifications) {
  struct Case {
    const char* text;
    const char* models;
  };
  const Case cases[] = {
      {"H100", "NVIDIA H100 80GB HBM3"},
      {"1xh100", "NVIDIA H100 80GB HBM3"},
      {"2xRTX3090", "NVIDIA GeForce RTX 3090 | NVIDIA GeForce RTX 3090"},
      {"2x3090", "NVIDIA GeForce RTX 3090 | NVIDIA GeForce RTX 3090"},
      {"3090", "NVIDIA GeForce RTX 3090"},
      {"2\u00d7H200", "NVIDIA H200 | NVIDIA H200"},
      {"2*T4", "Tesla T4 | Tesla T4"},
      {"1XV100", "Tesla V100-SXM2-32GB"},
      {" 1x RTX 3090 + 1x A100 ", "NVIDIA GeForce RTX 3090 | NVIDIA A100-SXM4-80GB"},
      {"1xNVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"},
      {"1xMI300X", "AMD Instinct MI300X"},
  };
  for (const Case& c : cases) {
    const auto machine = machine_of_models(c.text);
    ASSERT_TRUE(machine) << c.text << ": " << machine.error().message;
    EXPECT_EQ(models_of(*machine), c.models) << c.text;
  }
}

TEST(Models, WhatIsNotUnderstood) {
  struct Case {
    const char* text;
    const char* says;
  };
  const Case cases[] = {
      {"8xH101", "did you mean 'H100'?"},
      {"8xVoodoo", "unknown GPU model 'Voodoo'; there are H100, "},
      {"", "unknown GPU model ''"},
      {"2x", "unknown GPU model ''"},
      {"2xH100+", "unknown GPU model ''"},
      {"0xH100", "1 to 256 GPUs"},
      {"257xH100", "1 to 256 GPUs"},
      {"256xH100+1xT4", "1 to 256 GPUs"},
      {"99999999999999999999xH100", "1 to 256 GPUs"},
      {"1x\x1b[31m", "'\\x1b[31m'"},
  };
  for (const Case& c : cases) {
    const auto machine = machine_of_models(c.text);
    ASSERT_FALSE(machine) << c.text;
    EXPECT_EQ(machine.error().code, Code::Usage) << c.text;
    EXPECT_NE(machine.error().message.find(c.says), std::string::npos) << machine.error().message;
  }
}

TEST(Models, ADeviceIsComplete) {
  const auto machine = machine_of_models("4xH100");
  ASSERT_TRUE(machine);
  const Device expected{.index = 2,
                        .vendor = "nvidia",
                        .model = "NVIDIA H100 80GB HBM3",
                        .uuid = machine->devices[2].device.uuid,
                        .pci_address = "0000:2b:00.0",
                        .numa_node = 1,
                        .memory_total = Memory::mib(81559),
                        .memory_used = Memory{},
                        .utilization_percent = 0,
                        .temperature_celsius = 34,
                        .power_milliwatts = 70'000,
                        .power_limit_milliwatts = 700'000,
                        .processes = {},
                        .trouble = ""};
  EXPECT_EQ(machine_of(*machine, "sim:4xH100").devices[2], expected);
  EXPECT_EQ(machine->cpus, 64);
  EXPECT_EQ(machine->memory, Memory::gib(512));
}

TEST(Models, UuidsAreStableAndTheirOwn) {
  const auto machine = machine_of_models("256xRTX3090");
  ASSERT_TRUE(machine);
  std::set<std::string> uuids;
  std::set<std::string> addresses;
  for (const SimDevice& one : machine->devices) {
    uuids.insert(one.device.uuid);
    addresses.insert(one.device.pci_address);
  }
  EXPECT_EQ(uuids.size(), 256U);
  EXPECT_EQ(addresses.size(), 256U);
  // Written down once: scripts and databases may have kept it.
  EXPECT_EQ(machine->devices[0].device.uuid, "GPU-fe1da288-b26c-4766-e1b3-2c27dd2c9828");
}

TEST(Models, EveryKeyAndNameFindsItsModel) {
  for (const std::string& key : model_keys()) {
    const auto model = find_model(key);
    ASSERT_TRUE(model) << key;
    EXPECT_EQ(model->key, key);
    EXPECT_EQ(find_model(model->name)->key, key);
  }
}

}  // namespace
}  // namespace gflow::devices::sim
