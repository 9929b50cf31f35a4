// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "core/cpu_list.h"
#include "os/file.h"
#include "os/host.h"
#include "os/numa.h"
#include "os/user.h"

namespace gflow::daemon {

void tell_jobs_apart(Device& device, const OwnerOf& owner_of, const std::vector<JobId>& holders) {
  // A use that is not told of one process is not told of its job.
  std::map<JobId, std::optional<Memory>> uses;
  std::erase_if(device.processes, [&](DeviceProcess& process) {
    process.job = owner_of(process.pid);
    if (!process.job || std::ranges::find(holders, *process.job) == holders.end()) return false;
    const auto [at, fresh] = uses.try_emplace(*process.job, Memory{});
    if (!process.memory) at->second.reset();
    if (at->second && process.memory) *at->second += *process.memory;
    return true;
  });
  device.uses.clear();
  for (const auto& [job, memory] : uses) device.uses.push_back({job.value, memory});
}

std::vector<NumaCpus> host_cpus() {
  const std::vector<int> allowed = os::allowed_cpus();
  std::vector<NumaCpus> nodes;
  for (const os::NumaNode& node : os::numa_nodes()) {
    const auto all = parse_cpu_list(node.cpus);
    if (!all) continue;
    std::vector<int> usable;
    std::ranges::set_intersection(*all, allowed, std::back_inserter(usable));
    if (!usable.empty()) nodes.push_back({node.node, cpu_list_text(usable)});
  }
  if (nodes.empty() && !allowed.empty()) nodes.push_back({0, cpu_list_text(allowed)});
  return nodes;
}

void leave_out_uncut(Machine& machine, const engine::Policy& policy) {
  std::erase_if(machine.devices, [&](Device& device) {
    const auto gpu = std::ranges::find(machine.mig_gpus, device.uuid, &MigGpu::uuid);
    if (device.mig || gpu == machine.mig_gpus.end() || !policy.cuts(device.uuid)) return false;
    if (gpu->unread.empty()) return true;
    device.trouble = fmt::format("MIG is enabled, and gflow cannot cut it: {}", gpu->unread);
    return false;
  });
}

Machine machine_for_engine(const Machine& reading,
                           const OwnerOf& owner_of,
                           const HoldersOf& holders_of) {
  Machine machine = reading;
  // A source that says how many CPUs there are speaks of a machine that is not this one.
  if (!machine.cpus && machine.topology.cpus.empty()) machine.topology.cpus = host_cpus();
  if (!machine.cpus) machine.cpus = os::cpu_count();
  if (!machine.memory) machine.memory = os::host_memory();
  // Processes of a simulated machine need not be in this machine's process table.
  const bool real = !machine.source.starts_with("sim:");
  for (Device& device : machine.devices) {
    if (real) {
      std::erase_if(device.processes, [](const DeviceProcess& process) {
        return !os::exists(fmt::format("/proc/{}", process.pid));
      });
    }
    tell_jobs_apart(device, owner_of, holders_of(device.index));
  }
  return machine;
}

}  // namespace gflow::daemon
