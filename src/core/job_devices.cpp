// SPDX-License-Identifier: Apache-2.0
#include "core/job_devices.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/cpu_list.h"

namespace gflow {

std::optional<DeviceFilter> device_filter_of(const Job& job,
                                             const Attempt& attempt,
                                             const Machine& machine) {
  // Who uses the devices of an allocation is no process of gflow's.
  const bool is_free = job.spec.request.see_all || job.spec.allocation;
  if (machine.isolation == GpuIsolation::None || is_free) return std::nullopt;
  const std::vector<int>& own = attempt.allocation.gpus;
  const auto is_own = [&own](const Device& device) {
    return std::ranges::find(own, device.index) != own.end();
  };
  std::set<std::string> open;  // vendors of whose nodes one might be its own
  for (const Device& device : machine.devices) {
    if (is_own(device) && device.nodes.empty()) open.insert(device.vendor);
  }
  std::vector<DeviceNodes> denied;
  std::vector<DeviceNodes> allowed;
  for (const auto& [vendor, nodes] : machine.gpu_nodes) {
    if (!open.contains(vendor)) denied.insert(denied.end(), nodes.begin(), nodes.end());
  }
  for (const Device& device : machine.devices) {
    if (!is_own(device) && open.contains(device.vendor)) continue;
    std::vector<DeviceNodes>& list = is_own(device) ? allowed : denied;
    list.insert(list.end(), device.nodes.begin(), device.nodes.end());
  }
  DeviceFilter filter = deny(std::move(denied), allowed);
  if (filter.denied.empty()) return std::nullopt;
  return filter;
}

std::string gpus_without_nodes(const Machine& machine) {
  std::vector<int> gpus;
  if (machine.isolation == GpuIsolation::None) return "";
  for (const Device& device : machine.devices) {
    if (device.nodes.empty()) gpus.push_back(device.index);
  }
  return cpu_list_text(gpus);
}

}  // namespace gflow
