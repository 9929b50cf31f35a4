// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/processes.h"

#include <algorithm>
#include <array>

#include "devices/nvml/device_reader.h"
#include "devices/nvml/host_facts.h"

namespace gflow::devices::nvml {
namespace {

struct List {
  const char* call;
  ProcessKind kind;
};
constexpr List kCompute = {"nvmlDeviceGetComputeRunningProcesses", ProcessKind::Compute};
constexpr std::array<List, 2> kFurther = {
    {{"nvmlDeviceGetMPSComputeRunningProcesses", ProcessKind::Compute},  // clients of MPS
     {"nvmlDeviceGetGraphicsRunningProcesses", ProcessKind::Graphics}}};

bool is_wanted(const abi::Process& one, const ProcessesOf& of) {
  if (!of.instance) return true;
  if (one.gpu_instance == abi::kNoInstance) return !of.has_to_say;
  return one.gpu_instance == of.instance->gpu &&
         (one.compute_instance == abi::kNoInstance || one.compute_instance == of.instance->compute);
}

/// Adds the processes of a list that are in none before it: one that computes and draws computes.
void add_processes(std::vector<ProcessReport>& all,
                   const std::vector<abi::Process>& list,
                   const ProcessesOf& of,
                   ProcessKind kind) {
  for (const abi::Process& one : list) {
    const int pid = static_cast<int>(one.pid);
    const auto same = [pid](const ProcessReport& other) { return other.process.pid == pid; };
    if (!is_wanted(one, of) || std::ranges::any_of(all, same)) continue;
    const DeviceProcess process{pid, process_user(pid), process_name(pid), memory_of(one.memory)};
    all.push_back({process, kind});
  }
}

}  // namespace

Processes read_processes(const Library& library, ProcessList& list, const ProcessesOf& of) {
  Processes processes;
  const auto computing = list.read(library, of.device, kCompute.call);
  processes.code = computing.code;
  if (processes.code != abi::kSuccess) return processes;
  add_processes(processes.all, computing.processes, of, kCompute.kind);
  for (const List& one : kFurther) {
    add_processes(processes.all, list.read(library, of.device, one.call).processes, of, one.kind);
  }
  return processes;
}

}  // namespace gflow::devices::nvml
