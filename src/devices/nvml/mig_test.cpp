// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "core/catalogue.h"
#include "devices/device_indices.h"
#include "devices/machine_folder.h"
#include "devices/sim/machine_file.h"
#include "devices/source.h"
#include "devices/trouble.h"

// MIG devices as the real gflow-gpumon reads them of a library that plays the machine of a file.
namespace gflow::devices {
namespace {

using testing::MachineFolder;
using testing::reaches;

std::unique_ptr<Source> source_of(const MachineFolder& folder) {
  SourceOptions options;
  options.probe = GFLOW_GPUMON;
  options.environment = {std::string("LD_LIBRARY_PATH=") + GFLOW_FAKE_NVML_DIR,
                         "GFLOW_FAKE_NVML=" + folder.file(),
                         "GFLOW_NVML_LIBRARY="};
  options.pci_devices = folder.path() + "/pci";
  auto source = open_source("auto", options);
  if (!source) throw std::runtime_error(source.error().message);
  return std::move(*source);
}

/// "0 H100-3g.40gb 2/0; 1 H100;": index, model and instances of each.
std::string devices_text(const Machine& machine) {
  std::string text;
  for (const Device& device : machine.devices) {
    text += std::to_string(device.index) + " " +
            catalogue::device_model(device.vendor, device.model, device.memory_total);
    if (device.mig) {
      text += " " + std::to_string(device.mig->gpu_instance) + "/" +
              std::to_string(device.mig->compute_instance);
    }
    text += device.usable ? "; " : " unusable; ";
  }
  return text;
}

/// Asks until the devices are these.
bool becomes(Source& source, const std::string& devices) {
  source.refresh();
  const bool reached = reaches(source, [&](const Machine& machine) {
    const bool is_so = devices_text(machine) == devices;
    if (!is_so) source.refresh();
    return is_so;
  });
  EXPECT_TRUE(reached) << devices_text(source.machine());
  return reached;
}

/// What `nvidia-smi` of driver 590.48.01 said of an H100 cut into four with three processes.
constexpr const char* kCaptured = R"(
driver: 590.48.01
gpus:
  - model: H100
    pci_address: "0000:00:09.0"
    temperature_celsius: 52
    mig:
      - {profile: 3g.40gb, gpu_instance: 2, memory_used: 11091M, processes: [
          {pid: 4194001, memory: 2296M}, {pid: 4194002, memory: 1272M},
          {pid: 4194003, memory: 7484M}]}
      - {profile: 2g.20gb, gpu_instance: 3, memory_used: 17M}
      - {profile: 1g.10gb, gpu_instance: 9, memory_used: 9M}
      - {profile: 1g.10gb, gpu_instance: 10, memory_used: 9M}
)";

TEST(NvmlMig, AnH100CutIntoFour) {
  for (const char* entry : {"16", "24", "32"}) {
    const MachineFolder folder;
    folder.write(std::string(kCaptured) + "nvml: {process_entry_bytes: " + entry + "}\n");
    const auto source = source_of(folder);
    const Machine& machine = source->machine();
    ASSERT_EQ(devices_text(machine),
              "0 H100-3g.40gb 2/0; 1 H100-2g.20gb 3/0; 2 H100-1g.10gb 9/0; 3 H100-1g.10gb 10/0; ");
    const Device& first = machine.devices[0];
    EXPECT_EQ(first.model, "NVIDIA H100 80GB HBM3 MIG 3g.40gb");
    EXPECT_TRUE(first.uuid.starts_with("MIG-")) << first.uuid;
    EXPECT_TRUE(first.mig->parent.starts_with("GPU-")) << first.mig->parent;
    EXPECT_EQ(first.mig->profile, "3g.40gb");
    EXPECT_EQ(first.memory_total, Memory::mib(40448));
    EXPECT_EQ(machine.devices[1].memory_total, Memory::mib(20096));
    EXPECT_EQ(machine.devices[2].memory_total, Memory::mib(9984));
    EXPECT_EQ(first.memory_used, Memory::mib(11091));
    EXPECT_EQ(first.processes.size(), 3U) << entry;
    EXPECT_TRUE(machine.devices[1].processes.empty());
    for (const Device& device : machine.devices) {
      EXPECT_EQ(device.utilization_percent, std::nullopt);
      EXPECT_EQ(device.power_milliwatts, std::nullopt);
      EXPECT_EQ(device.temperature_celsius, 52);
      EXPECT_EQ(device.pci_address, "0000:00:09.0");
      EXPECT_EQ(device.trouble, "");
    }
  }
}

TEST(NvmlMig, TheSameMachineAsTheSimulatedOne) {
  for (const char* gpus : {"[{model: H100, count: 2}, {model: H100, mig: [3g.40gb, 1g.10gb+me]}]",
                           "[{model: A100, mig: [1c.3g.40gb, 2c.3g.40gb, 1g.10gb]}]",
                           "[{model: A100, count: 3, mig: [7g.80gb]}, {model: V100}]",
                           "[{model: A100-40GB, mig: []}, {model: L40S}]"}) {
    const MachineFolder folder;
    folder.write(std::string("gpus: ") + gpus);
    const auto source = source_of(folder);
    Machine expected =
        sim::machine_of(sim::read_machine(std::string("gpus: ") + gpus, "").value(), "nvml");
    for (Device& device : expected.devices) device.numa_node.reset();  // sysfs does not know them
    expected.topology.numa.assign(expected.devices.size(), std::nullopt);
    expected.gpu_nodes = {{"nvidia", {{195, 0, 247}}}};  // which simulated GPUs do not have
    EXPECT_EQ(devices_text(source->machine()), devices_text(expected));
    EXPECT_EQ(source->machine(), expected) << gpus;
    EXPECT_TRUE(check(source->machine().topology)) << gpus;
  }
}

TEST(NvmlMig, AProcessIsOfOneComputeInstance) {
  const MachineFolder folder;
  folder.write(
      "gpus:\n- model: A100\n  mig:\n"
      "  - {profile: 1c.3g.40gb, processes: [{pid: 4194001, memory: 1G}]}\n"
      "  - {profile: 2c.3g.40gb, processes: [{pid: 4194002, memory: 2G}]}\n");
  const Machine machine = source_of(folder)->machine();
  ASSERT_EQ(devices_text(machine), "0 A100-1c.3g.40gb 1/0; 1 A100-2c.3g.40gb 1/1; ");
  ASSERT_EQ(machine.devices[1].processes.size(), 1U);
  EXPECT_EQ(machine.devices[1].processes[0].pid, 4194002);
}

TEST(NvmlMig, OfADriverWithoutSomeOfTheCalls) {
  struct Case {
    const char* calls;
    const char* devices;
  };
  for (const Case& c :
       {Case{"nvmlDeviceGetName: 3", "0 GPU-3g.40gb 1/0; "},
        Case{"nvmlDeviceGetAttributes_v2: 13", "0 A100-3g.40gb 1/0; "},
        Case{"nvmlDeviceGetName: 3, nvmlDeviceGetAttributes_v2: 13", "0 MIG 1/0 unusable; "},
        Case{"nvmlDeviceGetMaxMigDeviceCount: 13", "0 A100-80G unusable; "},
        Case{"nvmlDeviceGetGpuInstanceId: 13", "0 A100-80G unusable; "}}) {
    const MachineFolder folder;
    folder.write("gpus: [{model: A100, mig: [3g.40gb]}]\nnvml: {calls: {" + std::string(c.calls) +
                 "}}");
    EXPECT_EQ(devices_text(source_of(folder)->machine()), c.devices) << c.calls;
  }
}

TEST(NvmlMig, SlicesComeAndGo) {
  const MachineFolder folder;
  folder.write("gpus: [{model: A100, count: 2}]");
  const auto source = source_of(folder);
  ASSERT_EQ(devices_text(source->machine()), "0 A100-80G; 1 A100-80G; ");
  folder.write("gpus: [{model: A100, mig: []}, {model: A100}]");  // nvidia-smi -mig 1
  ASSERT_TRUE(becomes(*source, "0 A100-80G unusable; 1 A100-80G; "));
  EXPECT_EQ(source->machine().devices[0].trouble, kMigTrouble);
  folder.write("gpus: [{model: A100, mig: [3g.40gb, 2g.20gb]}, {model: A100}]");
  ASSERT_TRUE(becomes(*source, "0 A100-80G; 1 A100-3g.40gb 1/0; 2 A100-2g.20gb 3/0; "));
  folder.write("gpus: [{model: A100, mig: [2g.20gb, 1g.10gb]}, {model: A100}]");
  ASSERT_TRUE(becomes(*source, "0 A100-80G; 1 A100-2g.20gb 3/0; 2 A100-1g.10gb 7/0; "));
  EXPECT_TRUE(check(source->machine().topology));
  folder.write("gpus: [{model: A100, state: lost, mig: [2g.20gb, 1g.10gb]}, {model: A100}]");
  ASSERT_TRUE(
      becomes(*source, "0 A100-80G; 1 A100-2g.20gb 3/0 unusable; 2 A100-1g.10gb 7/0 unusable; "));
  EXPECT_EQ(source->machine().devices[1].trouble, kSliceLostTrouble);
  EXPECT_EQ(source->machine().note, "");
  folder.write("gpus: [{model: A100, count: 2}]");  // nvidia-smi -mig 0
  ASSERT_TRUE(becomes(*source, "0 A100-80G; 1 A100-80G; "));
}

TEST(NvmlMig, SlicesOfWhichTheDriverDoesNotTellAreKeptAndNotGivenOut) {
  const MachineFolder folder;
  const std::string gpus = "gpus: [{model: A100, mig: [3g.40gb, 2g.20gb]}, {model: A100}]\n";
  folder.write(gpus);
  const auto source = source_of(folder);
  const std::string all = "0 A100-3g.40gb 1/0; 1 A100-2g.20gb 3/0; 2 A100-80G; ";
  ASSERT_EQ(devices_text(source->machine()), all);
  const std::string some = "0 A100-3g.40gb 1/0 unusable; 1 A100-2g.20gb 3/0 unusable; 2 A100-80G";
  struct Case {
    const char* call;
    const char* others;  // of the GPU that is not cut, of which that is not known then
  };
  for (const Case& c : {Case{"nvmlDeviceGetMaxMigDeviceCount: 4", "; "},
                        Case{"nvmlDeviceGetMigDeviceHandleByIndex: 999", "; "},
                        Case{"nvmlDeviceGetGpuInstanceId: 4", "; "},
                        Case{"nvmlDeviceGetUUID: 999", "; "},
                        Case{"nvmlDeviceGetMigMode: 999", " unusable; "}}) {
    folder.write(gpus + "nvml: {calls: {" + c.call + "}}");
    ASSERT_TRUE(becomes(*source, some + c.others)) << c.call;
    EXPECT_TRUE(source->machine().devices[0].trouble.starts_with(
        "the driver does not tell how this GPU is cut by MIG: "))
        << source->machine().devices[0].trouble;
    folder.write(gpus);
    ASSERT_TRUE(becomes(*source, all)) << c.call;
  }
}

TEST(NvmlMig, AThousandSlicesLeaveNothing) {
  const MachineFolder folder;
  const auto cut = [&folder](int time) {
    const std::string number = std::to_string(time);
    folder.write("gpus: [{model: A100, mig: [{profile: 3g.40gb, uuid: MIG-stays}, " +
                 std::string("{profile: 1g.10gb, uuid: MIG-") + number + "}]}, {model: A100}]");
    return number;
  };
  (void)cut(0);
  const auto source = source_of(folder);
  DeviceIndices indices;
  const auto is_held = [](int) { return false; };
  std::string first;
  for (int time = 1; time <= 1000; ++time) {
    const std::string uuid = "MIG-" + cut(time);
    source->refresh();
    ASSERT_TRUE(reaches(*source, [&](const Machine& machine) {
      const bool is_there =
          std::ranges::find(machine.devices, uuid, &Device::uuid) != machine.devices.end();
      if (!is_there) source->refresh();
      return is_there;
    }));
    const Machine told = indices.applied_to(source->machine(), is_held);
    ASSERT_EQ(told.devices.size(), 3U) << time;
    if (time == 1) first = devices_text(told);
    ASSERT_EQ(devices_text(told), first) << time;
  }
}

}  // namespace
}  // namespace gflow::devices
