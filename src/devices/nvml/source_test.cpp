// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/source.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/text.h"
#include "devices/machine_folder.h"
#include "devices/sim/machine_file.h"
#include "devices/trouble.h"
#include "os/file.h"
#include "os/user.h"

// The real gflow-gpumon with a libnvidia-ml.so.1 that plays the machine of a file.
namespace gflow::devices {
namespace {

using namespace std::chrono_literals;
using testing::MachineFolder;
using testing::reaches;

constexpr const char* kTwo = "driver: 550.54.15\ngpus: [{model: A100, count: 2}]\n";

SourceOptions options_for(const MachineFolder& folder) {
  SourceOptions options;
  options.probe = GFLOW_GPUMON;
  options.environment = {std::string("LD_LIBRARY_PATH=") + GFLOW_FAKE_NVML_DIR,
                         "GFLOW_FAKE_NVML=" + folder.file(),
                         "GFLOW_NVML_LIBRARY="};
  options.pci_devices = folder.path() + "/pci";
  return options;
}

SourceOptions impatient(const MachineFolder& folder) {
  SourceOptions options = options_for(folder);
  options.deadline = 50ms;
  options.first_answer = 1000ms;
  return options;
}

std::unique_ptr<Source> opened(const SourceOptions& options) {
  auto source = open_source("auto", options);
  if (!source) throw std::runtime_error(source.error().message);
  return std::move(*source);
}

bool two_are_well(const Machine& machine) {
  return machine.note.empty() && machine.devices.size() == 2 && machine.devices[0].usable &&
         machine.devices[0].memory_used.has_value();
}

/// As reaches(), asking for the next reading after each.
template <typename Wanted>
bool asked_until(Source& source, Wanted wanted) {
  return reaches(source, [&](const Machine& machine) {
    const bool enough = wanted(machine);
    if (!enough) source.refresh();
    return enough;
  });
}

/// Children of this process, zombies too.
int children() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto status = os::read_file(entry.path().string() + "/status", Memory::mib(1));
    const std::string parent = "\nPPid:\t" + std::to_string(::getpid()) + "\n";
    if (status && status->contains(parent)) ++count;
  }
  return count;
}

TEST(NvmlSource, TheSameMachineAsTheSimulatedOne) {
  const MachineFolder folder;
  const std::string text =
      "driver: 550.54.15\n"
      "gpus: [{model: H100, count: 3, utilization_percent: 44, memory_used: 10G}, {model: L40S}]\n";
  folder.write(text);
  const auto source = opened(options_for(folder));
  const auto file = sim::read_machine(text, "");
  ASSERT_TRUE(file);
  Machine expected = sim::machine_of(*file, "nvml");
  for (Device& device : expected.devices) device.numa_node.reset();  // sysfs does not know them
  expected.topology.numa.assign(4, std::nullopt);
  expected.gpu_nodes = {{"nvidia", {{195, 0, 247}}}};  // which simulated GPUs do not have
  EXPECT_EQ(source->machine(), expected);
  EXPECT_EQ(source->interval(), 5s);
}

TEST(NvmlSource, LinksAreReadThroughTheDriver) {
  for (const char* gpus : {"[{model: V100, count: 8}]",
                           "[{model: H100, count: 8}]",
                           "[{model: RTX4090, count: 8}]",
                           "[{model: V100, count: 16}]"}) {
    const MachineFolder folder;
    folder.write("gpus: " + std::string(gpus));
    const auto source = opened(options_for(folder));
    auto expected = sim::read_machine("gpus: " + std::string(gpus), "").value().topology;
    expected.numa.assign(expected.numa.size(), std::nullopt);
    EXPECT_EQ(source->machine().topology, expected) << gpus;
    EXPECT_TRUE(check(source->machine().topology)) << gpus;
  }
}

TEST(NvmlSource, LinksOfADriverThatDoesNotTell) {
  const struct {
    const char* missing;
    const char* gpus;
    bool known;
    int switch_links;
  } cases[] = {
      {"nvmlDeviceGetTopologyCommonAncestor", "[{model: H100, count: 2}]", false, 0},
      {"nvmlDeviceGetNvLinkState", "[{model: H100, count: 2}]", true, 0},
      {"nvmlDeviceGetNvLinkRemoteDeviceType", "[{model: H100, count: 2}]", true, 18},
      {"nvmlDeviceGetNvLinkRemoteDeviceType", "[{model: V100, count: 2}]", true, 0},
  };
  for (const auto& one : cases) {
    const MachineFolder folder;
    folder.write("nvml: {calls: {" + std::string(one.missing) + ": 13}}\ngpus: " + one.gpus);
    const Topology topology = opened(options_for(folder))->machine().topology;
    EXPECT_EQ(topology.gpus, one.known ? 2 : 0) << one.missing;
    EXPECT_EQ(topology.has_switch() ? topology.switch_links[0] : 0, one.switch_links)
        << one.missing;
  }
}

TEST(NvmlSource, ProcessesAppearAndGo) {
  for (const int bytes : {16, 24, 32}) {
    const MachineFolder folder;
    folder.write(kTwo);
    const auto source = opened(options_for(folder));
    EXPECT_TRUE(source->machine().devices.at(1).processes.empty());
    folder.write("nvml: {process_entry_bytes: " + std::to_string(bytes) +
                 "}\ngpus: [{model: A100}, {model: A100, processes: [" +
                 "{pid: 4194300, memory: 1G}, {pid: " + std::to_string(::getpid()) +
                 ", memory: 3G}, {pid: 1, kind: graphics}]}]");
    source->refresh();
    ASSERT_TRUE(reaches(
        *source, [](const Machine& machine) { return !machine.devices[1].processes.empty(); }));
    const std::vector<DeviceProcess> expected = {
        {4194300, "", "", Memory::gib(1)},
        {::getpid(), os::own_account().name, "devices_test", Memory::gib(3)}};
    EXPECT_EQ(source->machine().devices[1].processes, expected) << bytes;
    folder.write(kTwo);
    source->refresh();
    EXPECT_TRUE(reaches(
        *source, [](const Machine& machine) { return machine.devices[1].processes.empty(); }));
  }
}

TEST(NvmlSource, ThousandsOfProcesses) {
  const MachineFolder folder;
  std::string text = "gpus:\n- model: A100\n  processes:\n";
  for (int pid = 1; pid <= 4000; ++pid) text += "  - {pid: " + std::to_string(pid) + "}\n";
  folder.write(text);
  EXPECT_EQ(opened(options_for(folder))->machine().devices.at(0).processes.size(), 4000U);
}

TEST(NvmlSource, WhatTheDriverDoesNotGive) {
  struct Case {
    const char* name;
    const char* gpu;
    const char* trouble;
    bool usable;
  };
  const Case cases[] = {
      {"a few readings",
       "model: T4, unsupported: [utilization, power]",
       "no utilization, power (Not Supported)",
       true},
      {"memory (integrated GPUs)",
       "model: T4, unsupported: [memory_total]",
       "no memory total, memory used (Not Supported)",
       true},
      {"processes (WSL)",
       "model: T4, unsupported: [processes], processes: [{pid: 1}]",
       "no processes (Not Supported)",
       true},
      {"MIG", "model: A100, state: mig", kMigTrouble, false},
  };
  for (const Case& c : cases) {
    const MachineFolder folder;
    folder.write("gpus: [{" + std::string(c.gpu) + "}]");
    const auto source = opened(options_for(folder));
    ASSERT_EQ(source->machine().devices.size(), 1U) << c.name;
    EXPECT_EQ(source->machine().devices[0].trouble, c.trouble) << c.name;
    EXPECT_EQ(source->machine().devices[0].usable, c.usable) << c.name;
  }
}

TEST(NvmlSource, OlderDriversHaveOlderCalls) {
  struct Case {
    const char* missing;
    Memory used;  ///< as the first version counts it: with what the driver keeps
  };
  const Case cases[] = {
      {"nvmlDeviceGetComputeRunningProcesses_v3: 13", Memory::gib(2)},
      {"nvmlDeviceGetComputeRunningProcesses_v3: 13, nvmlDeviceGetComputeRunningProcesses_v2: 13",
       Memory::gib(2)},
      {"nvmlDeviceGetMemoryInfo_v2: 13", Memory::gib(2) + Memory::mib(256)},
      {"nvmlDeviceGetTemperature: 26", Memory::gib(2)},
      {"nvmlDeviceGetMigMode: 13", Memory::gib(2)},
  };
  for (const Case& c : cases) {
    const MachineFolder folder;
    folder.write("gpus: [{model: A100, processes: [{pid: 7, memory: 2G}]}]\nnvml: {calls: {" +
                 std::string(c.missing) + "}}");
    const auto source = opened(options_for(folder));
    ASSERT_EQ(source->machine().devices.size(), 1U) << c.missing;
    const Device& device = source->machine().devices[0];
    EXPECT_EQ(device.trouble, "") << c.missing;
    EXPECT_EQ(device.memory_used, c.used) << c.missing;
    EXPECT_EQ(device.temperature_celsius, 31) << c.missing;
    ASSERT_EQ(device.processes.size(), 1U) << c.missing;
    EXPECT_EQ(device.processes[0].pid, 7) << c.missing;
    EXPECT_EQ(device.processes[0].memory, Memory::gib(2)) << c.missing;
  }
}

TEST(NvmlSource, ALostGpuKeepsItsPlace) {
  const MachineFolder folder;
  folder.write(kTwo);
  const auto source = opened(options_for(folder));
  const Machine before = source->machine();
  folder.write("driver: 550.54.15\ngpus: [{model: A100, state: lost}, {model: A100}]");
  source->refresh();
  ASSERT_TRUE(reaches(*source, [](const Machine& machine) { return !machine.devices[0].usable; }));
  EXPECT_EQ(source->machine().devices[0].trouble, kLostTrouble);
  EXPECT_EQ(source->machine().devices[0].uuid, before.devices[0].uuid);
  EXPECT_EQ(source->machine().devices[1], before.devices[1]);
  folder.write(kTwo);
  source->refresh();
  EXPECT_TRUE(reaches(*source, [&](const Machine& machine) { return machine == before; }));
}

/// The sequence of a driver that stops answering: noted, kept for a while, taken back, mended.
void falls_ill_and_recovers(const std::string& fault, const std::string& note) {
  const int others = children();  // a probe that hung in another test may still be there
  const MachineFolder folder;
  folder.write(kTwo);
  const auto source = opened(impatient(folder));
  ASSERT_TRUE(reaches(*source, two_are_well)) << source->machine().note;
  folder.write(kTwo + fault);
  source->refresh();
  ASSERT_TRUE(reaches(*source, [](const Machine& machine) { return !machine.note.empty(); }));
  EXPECT_TRUE(source->machine().note.contains(note)) << source->machine().note;
  EXPECT_TRUE(source->machine().devices[0].memory_used) << "one miss is not the end";
  ASSERT_TRUE(reaches(*source, [](const Machine& machine) { return !machine.devices[0].usable; }));
  EXPECT_EQ(source->machine().devices.size(), 2U);
  EXPECT_EQ(source->machine().devices[0].memory_used, std::nullopt);
  EXPECT_EQ(source->machine().devices[0].temperature_celsius, std::nullopt);
  EXPECT_EQ(source->machine().devices[0].model, "NVIDIA A100-SXM4-80GB");
  EXPECT_TRUE(source->machine().devices[0].trouble.contains(note));
  folder.write(kTwo);
  ASSERT_TRUE(reaches(*source, two_are_well)) << source->machine().note;
  EXPECT_TRUE(reaches(*source, [&](const Machine&) { return children() <= others + 1; }))
      << "every probe that was left has to be gone";
}

TEST(NvmlSource, ADriverThatHangs) {
  falls_ill_and_recovers("nvml: {calls: {nvmlDeviceGetTemperature: hang}}", "does not answer");
}

TEST(NvmlSource, ADriverThatAborts) {
  falls_ill_and_recovers("nvml: {calls: {nvmlDeviceGetPowerUsage: abort}}", "ended (gflow-gpumon)");
}

TEST(NvmlSource, ADriverThatIsUnloadedUnderUs) {
  const MachineFolder folder;
  folder.write(kTwo);
  const auto source = opened(options_for(folder));
  const Machine before = source->machine();
  folder.write(std::string(kTwo) + "nvml: {calls: {nvmlDeviceGetCount_v2: 18, nvmlInit_v2: 18}}");
  ASSERT_TRUE(asked_until(*source, [](const Machine& machine) { return !machine.note.empty(); }));
  EXPECT_TRUE(source->machine().devices[0].usable) << "one miss is not the end";
  ASSERT_TRUE(asked_until(*source, [](const Machine& machine) {
    return !machine.devices[0].usable && !machine.devices[0].memory_used;
  }));
  EXPECT_TRUE(source->machine().note.contains("of another version")) << source->machine().note;
  folder.write(kTwo);
  source->refresh();
  EXPECT_TRUE(reaches(*source, [&](const Machine& machine) { return machine == before; }));
}

TEST(NvmlSource, OpeningNeverWaitsForLong) {
  struct Case {
    const char* fault;
    const char* note;
  };
  const Case cases[] = {{"nvmlInit_v2: hang", "does not answer within"},
                        {"nvmlInit_v2: abort", "ended (gflow-gpumon)"}};
  for (const Case& c : cases) {
    const MachineFolder folder;
    folder.write(std::string(kTwo) + "nvml: {calls: {" + c.fault + "}}");
    const auto refused = open_source("nvml", impatient(folder));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::Failure);
    EXPECT_TRUE(refused.error().message.contains(c.note)) << refused.error().message;
    const auto source = opened(impatient(folder));
    EXPECT_TRUE(source->machine().devices.empty());
    EXPECT_TRUE(source->machine().note.contains(c.note)) << source->machine().note;
    folder.write(kTwo);  // the driver comes to its senses: the devices appear
    EXPECT_TRUE(reaches(*source, two_are_well)) << source->machine().note;
  }
}

TEST(NvmlSource, WhyThereIsNothing) {
  struct Case {
    const char* machine;
    const char* note;
  };
  const Case cases[] = {
      {"gpus: []", "the NVIDIA driver finds no GPU"},
      {"gpus: []\nnvml: {calls: {nvmlInit_v2: 9}}", "the NVIDIA kernel driver is not loaded"},
      {"gpus: []\nnvml: {calls: {nvmlInit_v2: 4}}", "no permission to use the NVIDIA driver"},
      {"gpus: []\nnvml: {calls: {nvmlInit_v2: 999}}",
       "the NVIDIA driver does not work: Unknown Error"},
  };
  for (const Case& c : cases) {
    const MachineFolder folder;
    folder.write(c.machine);
    const auto source = opened(options_for(folder));
    EXPECT_EQ(source->machine().source, "none") << c.note;
    EXPECT_EQ(source->machine().note, c.note);
  }
}

TEST(NvmlSource, AGpuThatIsPluggedInIsWaitedFor) {
  struct Case {
    const char* vendor;
    const char* kind;
    const char* source;
  };
  const Case cases[] = {{"0x10de\n", "0x030200\n", "nvml"},
                        {"0x10de\n", "0x120000\n", "nvml"},
                        {"0x10de\n", "0x020700\n", "none"},   // a network card
                        {"0x1a03\n", "0x030000\n", "none"}};  // the console of a server
  for (const Case& c : cases) {
    const MachineFolder folder;
    folder.write("gpus: []\nnvml: {calls: {nvmlInit_v2: 9}}");
    const SourceOptions options = options_for(folder);
    const std::string device = options.pci_devices + "/0000:3b:00.0";
    ASSERT_TRUE(os::make_directories(device));
    ASSERT_TRUE(os::write_file(device + "/vendor", c.vendor));
    ASSERT_TRUE(os::write_file(device + "/class", c.kind));
    const auto source = opened(options);
    EXPECT_EQ(source->machine().source, c.source) << c.vendor << c.kind;
    EXPECT_EQ(source->machine().note, "the NVIDIA kernel driver is not loaded");
    if (std::string_view(c.source) == "none") continue;
    folder.write(kTwo);  // its driver is loaded
    EXPECT_TRUE(asked_until(*source, two_are_well)) << source->machine().note;
  }
}

}  // namespace
}  // namespace gflow::devices
