// SPDX-License-Identifier: Apache-2.0
#include "cli/info/machine_text.h"

#include <gtest/gtest.h>

namespace gflow::cli {
namespace {

api::DeviceView device(int index, std::string model, std::string uuid) {
  api::DeviceView view;
  view.device.index = index;
  view.device.model = std::move(model);
  view.device.uuid = std::move(uuid);
  return view;
}

TEST(MachineText, IsTheBlockOfTheDocuments) {
  api::MachineView machine;
  api::NodeView& node = machine.nodes.emplace_back();
  node.devices = {device(0, "NVIDIA GeForce RTX 3090", "GPU-xxxxx"),
                  device(1, "NVIDIA GeForce RTX 3090", "GPU-yyyyy")};
  node.devices[0].jobs = {JobId(5)};
  EXPECT_EQ(machine_text(machine, Painter()),
            "Scheduler Status: Running\n"
            "Total GPUs: 2\n"
            "Available GPUs: 1\n"
            "\n"
            "GPU 0: NVIDIA GeForce RTX 3090\n"
            "  UUID: GPU-xxxxx\n"
            "  Status: In use by job 5\n"
            "\n"
            "GPU 1: NVIDIA GeForce RTX 3090\n"
            "  UUID: GPU-yyyyy\n"
            "  Status: Available\n");
}

TEST(MachineText, SaysThatAGpuInUseIsDrained) {
  api::MachineView machine;
  machine.nodes.emplace_back().devices = {device(0, "NVIDIA H200", "GPU-1")};
  api::DeviceView& gpu = machine.nodes[0].devices[0];
  gpu.jobs = {JobId(5)};
  gpu.drained = true;
  EXPECT_NE(machine_text(machine, Painter()).find("  Status: In use by job 5\n  Note: drained\n"),
            std::string::npos);
  gpu.drained_reason = "its fan";
  EXPECT_NE(machine_text(machine, Painter()).find("\n  Note: drained: its fan\n"),
            std::string::npos);
}

TEST(MachineText, AddsReadingsProcessesAndAllocations) {
  api::MachineView machine;
  api::NodeView& node = machine.nodes.emplace_back();
  api::DeviceView busy = device(0, "NVIDIA H200", "GPU-1");
  busy.device.memory_total = Memory::gib(141);
  busy.device.memory_used = Memory::mib(700);
  busy.device.utilization_percent = 0;
  busy.device.temperature_celsius = 41;
  busy.device.power_milliwatts = 88'400;
  busy.device.power_limit_milliwatts = 700'000;
  busy.device.processes = {{4711, "dave", "python", Memory::gib(2)}};
  busy.foreign = busy.device.processes;
  busy.bar = DeviceBar::InUse;
  api::DeviceView lost = device(1, "NVIDIA H200", "");
  lost.device.usable = false;
  lost.bar = DeviceBar::Broken;
  lost.device.trouble = "fallen off the bus";
  node.devices = {busy, lost};
  api::JobView job;
  job.id = JobId(5);
  job.spec.name = "train";
  job.spec.user.name = "alice";
  job.spec.request = {.gpus = 2, .cpus = 4, .memory = Memory::gib(8)};
  job.gpu_indices = {2, 3};
  machine.running = {job};
  EXPECT_EQ(machine_text(machine, Painter()),
            "Scheduler Status: Running\n"
            "Total GPUs: 2\n"
            "Available GPUs: 0\n"
            "\n"
            "GPU 0: NVIDIA H200\n"
            "  UUID: GPU-1\n"
            "  Status: In use outside gflow: pid 4711 (dave) python\n"
            "  Memory: 700 MiB of 141.0 GiB used\n"
            "  Utilization: 0%\n"
            "  Temperature: 41 C\n"
            "  Power: 88 W of 700 W\n"
            "  Processes:\n"
            "    pid 4711 (dave) python, 2.0 GiB (outside gflow)\n"
            "\n"
            "GPU 1: NVIDIA H200\n"
            "  Status: Not usable: fallen off the bus\n"
            "\n"
            "Allocations by job:\n"
            "  Job 5 (train, alice): GPU 2,3, 4 CPUs, 8G memory\n");
}

TEST(MachineText, SaysWhatIsLeftOfASharedGpu) {
  api::MachineView machine;
  api::NodeView& node = machine.nodes.emplace_back();
  node.devices = {device(0, "NVIDIA H200", "GPU-1"), device(1, "NVIDIA H200", "GPU-2")};
  node.devices[0].jobs = {JobId(5), JobId(7)};
  node.devices[0].mode = GpuMode::Fraction;
  node.devices[0].share_free = Share::percent(25);
  node.devices[0].memory_free = Memory::gib(100);
  node.devices[1].jobs = {JobId(8)};
  node.devices[1].mode = GpuMode::TimeSlice;
  api::JobView job;
  job.id = JobId(5);
  job.spec.name = "serve";
  job.spec.user.name = "alice";
  job.spec.request = {.gpus = 1, .share = Share::percent(50), .mode = GpuMode::Fraction};
  job.gpu_indices = {0};
  machine.running = {job};
  EXPECT_EQ(machine_text(machine, Painter()),
            "Scheduler Status: Running\n"
            "Total GPUs: 2\n"
            "Available GPUs: 0\n"
            "\n"
            "GPU 0: NVIDIA H200\n"
            "  UUID: GPU-1\n"
            "  Status: In use by jobs 5, 7\n"
            "  Free: 0.25 of its compute, 100G of memory\n"
            "\n"
            "GPU 1: NVIDIA H200\n"
            "  UUID: GPU-2\n"
            "  Status: In use by job 8\n"
            "  Free: a time slice\n"
            "\n"
            "Allocations by job:\n"
            "  Job 5 (serve, alice): GPU 0 (half of a GPU)\n");
}

TEST(MachineText, SaysWhyThereAreNoGpus) {
  api::MachineView machine;
  api::NodeView& node = machine.nodes.emplace_back();
  node.note = "libnvidia-ml.so.1 is not installed";
  EXPECT_EQ(machine_text(machine, Painter()),
            "Scheduler Status: Running\n"
            "Total GPUs: 0\n"
            "Available GPUs: 0\n"
            "\n"
            "No GPUs: libnvidia-ml.so.1 is not installed\n"
            "Jobs without --gpus still run.\n");
}

TEST(MachineText, HasALineForEachGpu) {
  api::MachineView machine;
  api::NodeView& node = machine.nodes.emplace_back();
  node.devices = {device(0, "H200", "GPU-1"), device(1, "H200", "GPU-2")};
  node.devices[0].jobs = {JobId(5)};
  node.devices[1].device.utilization_percent = 7;
  EXPECT_EQ(machine_brief(machine, Painter()),
            "GPU    MODEL    UTIL    MEMORY    STATUS\n"
            "0      H200     -       -         In use by job 5\n"
            "1      H200     7%      -         Available\n");
}

TEST(MachineText, SaysWhereLaunchesFail) {
  api::MachineView machine;
  machine.nodes = {{.name = "n1"}, {.name = "n2"}};
  machine.unhealthy = {{"n1", "no space", 1, WallTime(std::chrono::seconds(5))},
                       {"n2", "no shim", 3, {}}};
  const std::string lines =
      "Unhealthy: node n1: no space (1 launch failed, will be retried soon)\n"
      "Unhealthy: node n2: no shim (3 launches failed, will be retried with the next job)\n";
  EXPECT_NE(machine_text(machine, Painter(false)).find("Available GPUs: 0\n" + lines),
            std::string::npos);
  EXPECT_TRUE(machine_brief(machine, Painter(false)).starts_with(lines));
}

TEST(MachineText, SaysWhatIsDrainedAndNotPresent) {
  api::MachineView machine;
  machine.nodes = {{.name = "n1"}, {.name = "n2"}};
  machine.nodes[0].drained_absent = {{"n1", 1, "fan", "root", "GPU-b"}};
  machine.nodes[1].drained_absent = {{"n2", 0, "", "root", ""}};
  const std::string lines =
      "Drained and not present: GPU-b (was GPU 1 of node n1): fan\n"
      "Drained and not present: GPU 0 of node n2\n";
  EXPECT_TRUE(machine_text(machine, Painter()).ends_with("\n" + lines));
  EXPECT_TRUE(machine_brief(machine, Painter()).ends_with(lines));
}

TEST(MachineText, MakesForeignNamesPrintable) {
  api::DeviceView view = device(0, "x", "y");
  view.bar = DeviceBar::InUse;
  view.foreign = {{7, "", "evil\x1b[2J", {}}, {8, "eve", "", {}}};
  EXPECT_EQ(device_status(view), "In use outside gflow: pid 7 evil\\x1b[2J, pid 8 (eve)");
}

}  // namespace
}  // namespace gflow::cli
