// SPDX-License-Identifier: Apache-2.0
#include "runner/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/launch.h"

namespace gflow::runner {
namespace {

Machine machine_of(const std::string& vendor) {
  Machine machine;
  for (int index = 0; index < 4; ++index) {
    Device device;
    device.index = index;
    device.vendor = vendor;
    device.uuid = "GPU-" + std::to_string(index);
    machine.devices.push_back(device);
  }
  return machine;
}

Job job_of() {
  Job job;
  job.id = JobId(42);
  job.spec.name = "brave-river-1234";
  job.spec.user = {1000, "alice"};
  job.spec.project = "vision";
  job.spec.work_dir = "/home/alice/run";
  return job;
}

const Surroundings kAround{"/run/gflowd.sock", "/logs/42.log", "", {41000, 8}};

/// As a job finds it: what its user had, what the engine granted, what the node knows.
std::vector<std::string> environment_of(const Job& job,
                                        const Attempt& attempt,
                                        const Payload& payload,
                                        const Machine& machine,
                                        const Surroundings& around) {
  const auto granted =
      changed_environment(payload.environment, launch_environment(job, attempt, machine));
  return changed_environment(granted, local_environment(around));
}

class Environment {
 public:
  Environment(const Job& job, std::vector<int> gpus, const Machine& machine, Payload payload = {}) {
    Attempt attempt;
    attempt.number = 3;
    attempt.allocation = {"lab1", std::move(gpus), {}};
    take(environment_of(job, attempt, payload, machine, kAround));
  }
  explicit Environment(const std::vector<std::string>& list) { take(list); }
  void take(const std::vector<std::string>& list) {
    for (const std::string& text : list) {
      const std::size_t equals = text.find('=');
      EXPECT_TRUE(values_.emplace(text.substr(0, equals), text.substr(equals + 1)).second) << text;
    }
  }
  std::string operator[](const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? "(not set)" : found->second;
  }

 private:
  std::map<std::string, std::string> values_;
};

using Expected = std::vector<std::pair<const char*, const char*>>;

void expect(const Environment& environment, const Expected& expected) {
  for (const auto& [name, value] : expected) EXPECT_EQ(environment[name], value) << name;
}

TEST(Environment, TellsTheJobWhatItIsAndHas) {
  Job job = job_of();
  job.spec.request = {.gpus = 2, .cpus = 8, .memory = Memory::gib(4)};
  job.preemptions = 1;
  job.spec.time_limit = std::chrono::minutes(30);
  expect(Environment(job, {1, 3}, machine_of("nvidia")),
         {{"GFLOW_JOB_ID", "42"},
          {"GFLOW_JOB_NAME", "brave-river-1234"},
          {"GFLOW_JOB_USER", "alice"},
          {"GFLOW_PROJECT", "vision"},
          {"GFLOW_SUBMIT_DIR", "/home/alice/run"},
          {"GFLOW_ATTEMPT", "3"},
          {"GFLOW_RESTART_COUNT", "2"},
          {"GFLOW_PREEMPTIONS", "1"},
          {"GFLOW_NODE", "lab1"},
          {"GFLOW_NODELIST", "lab1"},
          {"GFLOW_NNODES", "1"},
          {"GFLOW_NODE_RANK", "0"},
          {"GFLOW_GPU_SHARE", "1"},
          {"GFLOW_GPU_MODE", "whole"},
          {"GFLOW_GPU_MEMORY_MIB", "(not set)"},
          {"GFLOW_CPU_LIST", "(not set)"},
          {"GFLOW_GPUS", "2"},
          {"GFLOW_GPU_INDICES", "1,3"},
          {"GFLOW_GPU_UUIDS", "GPU-1,GPU-3"},
          {"GFLOW_CPUS", "8"},
          {"GFLOW_MEMORY_MIB", "4096"},
          {"GFLOW_TIME_LIMIT_SECONDS", "1800"},
          {"GFLOW_LOG_FILE", "/logs/42.log"},
          {"GFLOW_API", "/run/gflowd.sock"},
          {"GFLOW_PORT_BASE", "41000"},
          {"GFLOW_PORT_COUNT", "8"},
          {"GFLOW_JOB_CONFIG", "(not set)"},
          {"CUDA_VISIBLE_DEVICES", "1,3"},
          {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}});
}

TEST(Environment, RendezvousForTorchrunButNoRank) {
  expect(Environment(job_of(), {0, 1}, machine_of("nvidia")),
         {{"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", "41000"},
          {"PET_NNODES", "1"},
          {"PET_NODE_RANK", "0"},
          {"PET_NPROC_PER_NODE", "2"},
          {"PET_MASTER_ADDR", "127.0.0.1"},
          {"PET_MASTER_PORT", "41000"},
          {"RANK", "(not set)"},
          {"LOCAL_RANK", "(not set)"},
          {"WORLD_SIZE", "(not set)"}});
}

TEST(Environment, WithoutGpusNoneIsVisible) {
  expect(Environment(job_of(), {}, machine_of("nvidia")),
         {{"CUDA_VISIBLE_DEVICES", ""},
          {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
          {"GFLOW_GPUS", "0"},
          {"GFLOW_GPU_INDICES", ""},
          {"GFLOW_GPU_SHARE", "0"},
          {"GFLOW_GPU_MODE", ""},
          {"PET_NPROC_PER_NODE", "1"}});
}

TEST(Environment, OtherVendors) {
  expect(Environment(job_of(), {0, 2}, machine_of("amd")),
         {{"ROCR_VISIBLE_DEVICES", "0,2"}, {"CUDA_VISIBLE_DEVICES", "(not set)"}});
  expect(Environment(job_of(), {0, 2}, machine_of("ascend")),
         {{"ASCEND_RT_VISIBLE_DEVICES", "0,2"}});
  expect(Environment(job_of(), {0, 2}, machine_of("intel")), {{"ZE_AFFINITY_MASK", "0,2"}});
}

TEST(Environment, SharesOfADeviceAndCpus) {
  Job job = job_of();
  job.spec.request = {.gpus = 1,
                      .share = Share::percent(25),
                      .gpu_memory = Memory::gib(8),
                      .mode = GpuMode::Fraction,
                      .cpus = 5};
  Attempt attempt;
  attempt.allocation = {.node = "", .gpus = {2}, .cpus = {0, 1, 2, 3, 8}};
  expect(Environment(environment_of(job, attempt, {}, machine_of("nvidia"), kAround)),
         {{"CUDA_VISIBLE_DEVICES", "2"},
          {"GFLOW_GPU_SHARE", "0.25"},
          {"GFLOW_GPU_MODE", "fraction"},
          {"GFLOW_GPU_MEMORY_MIB", "8192"},
          {"GFLOW_CPU_LIST", "0-3,8"}});
}

TEST(Environment, SeveralNodes) {
  Attempt attempt;
  attempt.allocation = {.node = "gpu-1", .gpus = {0, 1}, .cpus = {}};
  attempt.peers = {{"gpu-7", {2, 3}, {}}, {"lab1", {0, 1}, {}}};
  expect(Environment(environment_of(job_of(), attempt, {}, machine_of("nvidia"), kAround)),
         {{"GFLOW_NODE", "gpu-1"},
          {"GFLOW_NODELIST", "gpu-1,gpu-7,lab1"},
          {"GFLOW_NNODES", "3"},
          {"GFLOW_NODE_RANK", "0"},
          {"PET_NNODES", "3"},
          {"PET_NPROC_PER_NODE", "2"}});
}

TEST(Environment, ToSeeAllIsToHoldNone) {
  Job job = job_of();
  job.spec.request.see_all = true;
  expect(Environment(job, {}, machine_of("nvidia")),
         {{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}, {"GFLOW_GPUS", "0"}, {"GFLOW_GPU_INDICES", ""}});
  expect(Environment(job, {}, machine_of("intel")), {{"ZE_AFFINITY_MASK", "0,1,2,3"}});
}

// Each vendor's libraries count only its own devices.
TEST(Environment, DevicesOfSeveralVendors) {
  Machine machine = machine_of("nvidia");
  machine.devices[1].vendor = "amd";
  machine.devices[3].vendor = "amd";
  expect(Environment(job_of(), {3}, machine),
         {{"ROCR_VISIBLE_DEVICES", "1"},
          {"CUDA_VISIBLE_DEVICES", "(not set)"},
          {"GFLOW_GPU_INDICES", "3"},
          {"GFLOW_GPU_VENDOR", "amd"}});
  expect(Environment(job_of(), {2}, machine),
         {{"CUDA_VISIBLE_DEVICES", "1"}, {"ROCR_VISIBLE_DEVICES", ""}});
  expect(Environment(job_of(), {}, machine),
         {{"CUDA_VISIBLE_DEVICES", ""}, {"ROCR_VISIBLE_DEVICES", ""}});
}

TEST(Environment, MigDevicesAreNamedByUuid) {
  Machine machine = machine_of("nvidia");
  for (const int slice : {1, 2}) {
    Device& device = machine.devices[static_cast<std::size_t>(slice)];
    device.uuid = "MIG-" + std::to_string(slice);
    device.mig = MigDevice{"GPU-cut", "3g.20gb", slice, 0};
  }
  expect(Environment(job_of(), {1, 2}, machine),
         {{"CUDA_VISIBLE_DEVICES", "MIG-1,MIG-2"}, {"GFLOW_GPU_UUIDS", "MIG-1,MIG-2"}});
  // A driver that tells of slices counts GPUs otherwise.
  expect(Environment(job_of(), {3}, machine), {{"CUDA_VISIBLE_DEVICES", "GPU-3"}});
  Job sees = job_of();
  sees.spec.request = {.gpus = 0, .see_all = true};
  expect(Environment(sees, {}, machine), {{"CUDA_VISIBLE_DEVICES", "GPU-0,GPU-3"}});
  machine.devices[0].usable = false;
  machine.devices[3].vendor = "amd";
  expect(Environment(sees, {}, machine),
         {{"CUDA_VISIBLE_DEVICES", "MIG-1,MIG-2"}, {"ROCR_VISIBLE_DEVICES", "0"}});
  machine.devices.erase(machine.devices.begin());
  machine.devices.pop_back();
  expect(Environment(sees, {}, machine), {{"CUDA_VISIBLE_DEVICES", "MIG-1,MIG-2"}});
}

/// A driver counts the devices that can be opened.
TEST(Environment, WhoIsKeptFromOthersCountsItsOwn) {
  Machine machine = machine_of("nvidia");
  machine.isolation = GpuIsolation::Filter;
  for (Device& device : machine.devices) {
    device.nodes = {DeviceNodes::one(195, static_cast<std::uint32_t>(device.index))};
  }
  expect(Environment(job_of(), {1, 3}, machine),
         {{"CUDA_VISIBLE_DEVICES", "0,1"},
          {"GFLOW_GPU_INDICES", "1,3"},
          {"GFLOW_GPU_UUIDS", "GPU-1,GPU-3"}});
  expect(Environment(job_of(), {}, machine), {{"CUDA_VISIBLE_DEVICES", ""}});
  Job sees = job_of();
  sees.spec.request = {.gpus = 0, .see_all = true};
  expect(Environment(sees, {}, machine), {{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}});
  machine.devices[0].usable = false;  // which it does not see
  expect(Environment(job_of(), {3}, machine), {{"CUDA_VISIBLE_DEVICES", "0"}});
  machine.devices[1].vendor = "amd";
  expect(Environment(job_of(), {3}, machine),
         {{"CUDA_VISIBLE_DEVICES", "0"}, {"ROCR_VISIBLE_DEVICES", ""}});
  expect(Environment(job_of(), {1}, machine), {{"ROCR_VISIBLE_DEVICES", "0"}});
  machine.devices[3].mig = MigDevice{"GPU-cut", "3g.20gb", 3, 0};
  expect(Environment(job_of(), {3}, machine), {{"CUDA_VISIBLE_DEVICES", "GPU-3"}});
  machine.devices[3].nodes.clear();
  machine.devices[3].mig.reset();
  machine.devices[0].usable = true;
  expect(Environment(job_of(), {3}, machine), {{"CUDA_VISIBLE_DEVICES", "GPU-3"}});
  expect(Environment(job_of(), {0}, machine), {{"CUDA_VISIBLE_DEVICES", "GPU-0"}});
}

TEST(Environment, TheSubmittersStaysUnderneath) {
  Payload payload;
  payload.environment = {"HOME=/home/alice",
                         "EMPTY=",
                         "WITH=equals=inside",
                         "no equals",
                         "=no name",
                         "GFLOW_ARRAY_TASK_ID=5",
                         "GFLOW_PARAM_LR=0.1",
                         "GFLOW_SOCKET=/my.sock",
                         "GFLOW_JOB_ID=1",
                         "GFLOW_JOB_CONFIG=/outer",
                         "GFLOW_CPUS=64",
                         "GFLOW_CPU_LIST=0-63",
                         "GFLOW_GPU_MEMORY_MIB=1",
                         "GFLOW_ATTEMPT_ID=outer",
                         "CUDA_VISIBLE_DEVICES=0,1,2,3",
                         "WORLD_SIZE=4"};
  expect(Environment(job_of(), {2}, machine_of("nvidia"), payload),
         {{"HOME", "/home/alice"},
          {"EMPTY", ""},
          {"WITH", "equals=inside"},
          {"GFLOW_ARRAY_TASK_ID", "5"},
          {"GFLOW_PARAM_LR", "0.1"},
          {"GFLOW_SOCKET", "/my.sock"},
          {"GFLOW_JOB_ID", "42"},
          {"GFLOW_JOB_CONFIG", "(not set)"},
          {"GFLOW_CPUS", "(not set)"},
          {"GFLOW_CPU_LIST", "(not set)"},
          {"GFLOW_GPU_MEMORY_MIB", "(not set)"},
          {"GFLOW_ATTEMPT_ID", "(not set)"},
          {"CUDA_VISIBLE_DEVICES", "2"},
          {"WORLD_SIZE", "(not set)"}});
}

}  // namespace
}  // namespace gflow::runner
