// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "core/cpu_list.h"
#include "core/gpu_environment.h"
#include "core/job_devices.h"
#include "core/launch.h"

namespace gflow {
namespace {

/// Variables by name, to be set or, without a value, taken away.
class EnvironmentChanges {
 public:
  void set(const std::string& name, std::string value) { values_[name] = std::move(value); }
  void set(const std::string& name, std::int64_t value) { set(name, std::to_string(value)); }
  void unset(const std::string& name) { values_[name] = std::nullopt; }
  [[nodiscard]] std::vector<std::string> list() const {
    std::vector<std::string> list;
    for (const auto& [name, value] : values_) list.push_back(value ? name + "=" + *value : name);
    return list;
  }

 private:
  std::map<std::string, std::optional<std::string>> values_;
};

/// What a job was told, and this one is not always: a job submitted from within a job must not
/// take it over.
constexpr std::array<const char*, 12> kNotInherited = {"GFLOW_JOB_CONFIG",
                                                       "GFLOW_GPU_MEMORY_MIB",
                                                       "GFLOW_CPUS",
                                                       "GFLOW_CPU_LIST",
                                                       "GFLOW_MEMORY_MIB",
                                                       "GFLOW_TIME_LIMIT_SECONDS",
                                                       "GFLOW_PORT_BASE",
                                                       "GFLOW_PORT_COUNT",
                                                       "GFLOW_ATTEMPT_ID",
                                                       "RANK",
                                                       "LOCAL_RANK",
                                                       "WORLD_SIZE"};

void set_identity(EnvironmentChanges& changes, const Job& job, const Attempt& attempt) {
  changes.set("GFLOW_JOB_ID", std::to_string(job.id.value));
  changes.set("GFLOW_JOB_NAME", job.spec.name);
  changes.set("GFLOW_JOB_USER", job.spec.user.name);
  changes.set("GFLOW_PROJECT", job.spec.project);
  changes.set("GFLOW_SUBMIT_DIR", job.spec.work_dir);
  changes.set("GFLOW_ATTEMPT", attempt.number);
  changes.set("GFLOW_RESTART_COUNT", std::max(attempt.number - 1, 0));
  changes.set("GFLOW_PREEMPTIONS", job.preemptions);
}

/// What the libraries of a vendor read to see only some of its devices. They count only those of
/// their vendor, in PCI order.
struct VendorVariables {
  std::string_view vendor;
  const char* visible;
  /// An empty list hides all devices; where it does not, a job without devices is not kept from
  /// seeing them.
  bool empty_hides;
  bool takes_uuids;  ///< in the place of positions
};
constexpr std::array<VendorVariables, 4> kVisibleVariables = {{
    {"nvidia", "CUDA_VISIBLE_DEVICES", true, true},
    {"amd", "ROCR_VISIBLE_DEVICES", true, true},
    {"ascend", "ASCEND_RT_VISIBLE_DEVICES", false, false},
    {"intel", "ZE_AFFINITY_MASK", false, false},
}};

/// The devices of a vendor in PCI order. An index outlives what is before it, so theirs is another
/// one where devices came and went; without addresses it is the best there is.
std::vector<const Device*> devices_of_vendor(const Machine& machine, std::string_view vendor) {
  std::vector<const Device*> devices;
  for (const Device& device : machine.devices) {
    if (device.vendor == vendor) devices.push_back(&device);
  }
  const auto has_address = [](const Device* device) { return !device->pci_address.empty(); };
  if (std::ranges::all_of(devices, has_address)) {
    // Only the domain before the first colon varies in length: the longer number is the larger one.
    std::ranges::stable_sort(devices, {}, [](const Device* device) {
      return std::pair(device->pci_address.size(), std::string_view(device->pci_address));
    });
  }
  return devices;
}

/// Which devices a job sees, and which it can open besides.
struct Seen {
  std::vector<int> gpus;
  std::optional<DeviceFilter> filter;  ///< that keeps it from others; empty: nothing does

  [[nodiscard]] bool has(const Device& device) const {
    return std::ranges::find(gpus, device.index) != gpus.end();
  }
  /// A driver does not count it: it is another's and cannot be opened.
  [[nodiscard]] bool hides(const Device& device) const {
    return filter && !has(device) && std::ranges::any_of(device.nodes, [this](const auto& nodes) {
             return filter->denies(nodes.major, nodes.first);
           });
  }
  /// Whether a driver counts it can be told.
  [[nodiscard]] bool is_clear(const Device& device) const {
    return device.usable && !device.mig && (!filter || !device.nodes.empty());
  }
};

/// Positions of these devices among those of their vendor, as the driver counts them: those that
/// can be opened. Whether a driver still counts one that is broken nobody knows, and MIG devices it
/// counts otherwise: where there are such, all are named by UUID, where that is understood.
std::string vendor_list(const Machine& machine, const Seen& seen, const VendorVariables& row) {
  std::vector<const Device*> devices = devices_of_vendor(machine, row.vendor);
  std::erase_if(devices, [&seen](const Device* device) { return seen.hides(*device); });
  std::vector<std::string> positions;
  std::vector<std::string> uuids;
  bool all_there = true;
  bool have_uuids = true;
  for (std::size_t position = 0; position < devices.size(); ++position) {
    const Device& device = *devices[position];
    all_there = all_there && seen.is_clear(device);
    if (!seen.has(device)) continue;
    positions.push_back(std::to_string(position));
    uuids.push_back(device.uuid);
    have_uuids = have_uuids && !device.uuid.empty();
  }
  return join(row.takes_uuids && have_uuids && !all_there ? uuids : positions, ",");
}

bool has_any_of_vendor(const Machine& machine, const Seen& seen, std::string_view vendor) {
  return std::ranges::any_of(machine.devices, [&](const Device& device) {
    return device.vendor == vendor && seen.has(device);
  });
}

bool has_vendor(const Machine& machine, std::string_view vendor) {
  return std::ranges::find(machine.devices, vendor, &Device::vendor) != machine.devices.end();
}

void set_visible(EnvironmentChanges& changes, const Machine& machine, const Seen& seen) {
  changes.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  changes.set("CUDA_VISIBLE_DEVICES", "");
  for (const VendorVariables& row : kVisibleVariables) {
    if (!has_vendor(machine, row.vendor)) continue;
    const std::string list = vendor_list(machine, seen, row);
    if (!list.empty() || row.empty_hides) changes.set(row.visible, list);
  }
  if (has_any_of_vendor(machine, seen, "amd")) {
    // Two filters one after the other leave nothing: only ROCR_VISIBLE_DEVICES, as AMD says for
    // Linux.
    for (const char* name : {"HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}) changes.unset(name);
    if (!has_any_of_vendor(machine, seen, "nvidia")) changes.unset("CUDA_VISIBLE_DEVICES");
  }
  if (has_vendor(machine, "intel")) changes.set("ZE_ENABLE_PCI_ID_DEVICE_ORDER", "1");
}

/// What a job sees that sees all. CUDA passes GPUs by where it is told of a MIG device, too, so
/// those are named only where it could use nothing else.
std::vector<int> all_to_see(const Machine& machine) {
  const bool has_gpu = std::ranges::any_of(machine.devices, [](const Device& device) {
    return device.vendor == "nvidia" && !device.mig && device.usable;
  });
  const bool has_slice = std::ranges::any_of(
      machine.devices, [](const Device& device) { return device.mig.has_value(); });
  std::vector<int> seen;
  for (const Device& device : machine.devices) {
    const bool is_left_out =
        device.mig ? has_gpu : device.vendor == "nvidia" && has_slice && !has_gpu;
    if (!is_left_out) seen.push_back(device.index);
  }
  return seen;
}

void set_devices(EnvironmentChanges& changes,
                 const Job& job,
                 const Attempt& attempt,
                 const Machine& machine) {
  const Request& request = job.spec.request;
  const std::vector<int>& gpus = attempt.allocation.gpus;
  for (const auto& [name, value] : gpu_environment(request, machine, gpus)) {
    changes.set(name, value);
  }
  set_visible(changes,
              machine,
              {.gpus = request.see_all ? all_to_see(machine) : gpus,
               .filter = device_filter_of(job, attempt, machine)});
}

void set_nodes(EnvironmentChanges& changes, const Attempt& attempt) {
  std::vector<std::string> nodes;
  for (const Allocation& part : allocations_of(attempt)) nodes.push_back(part.node);
  changes.set("GFLOW_NODE", nodes.front());
  changes.set("GFLOW_NODELIST", join(nodes, ","));
  changes.set("GFLOW_NNODES", static_cast<std::int64_t>(nodes.size()));
  changes.set("GFLOW_NODE_RANK", 0);
}

void set_limits(EnvironmentChanges& changes, const JobSpec& spec, const Allocation& allocation) {
  if (spec.request.cpus > 0) changes.set("GFLOW_CPUS", spec.request.cpus);
  if (!allocation.cpus.empty()) changes.set("GFLOW_CPU_LIST", cpu_list_text(allocation.cpus));
  if (spec.request.memory.bytes > 0) {
    changes.set("GFLOW_MEMORY_MIB", spec.request.memory.bytes >> 20);
  }
  if (spec.time_limit) changes.set("GFLOW_TIME_LIMIT_SECONDS", spec.time_limit->count());
}

/// What torchrun reads; the rest of the rendezvous is ports, which only the node knows. RANK,
/// LOCAL_RANK and WORLD_SIZE belong to each process: set here they would make a plain script
/// believe it is one of several, and a submitter's are of another run.
void set_torchrun(EnvironmentChanges& changes, const Attempt& attempt) {
  changes.set("PET_NNODES", static_cast<std::int64_t>(1 + attempt.peers.size()));
  changes.set("PET_NODE_RANK", 0);
  const auto gpus = static_cast<std::int64_t>(attempt.allocation.gpus.size());
  changes.set("PET_NPROC_PER_NODE", std::max<std::int64_t>(gpus, 1));
}

}  // namespace

std::vector<std::string> launch_environment(const Job& job,
                                            const Attempt& attempt,
                                            const Machine& machine) {
  EnvironmentChanges changes;
  for (const char* name : kNotInherited) changes.unset(name);
  set_identity(changes, job, attempt);
  set_devices(changes, job, attempt, machine);
  set_nodes(changes, attempt);
  set_limits(changes, job.spec, attempt.allocation);
  set_torchrun(changes, attempt);
  return changes.list();
}

std::vector<std::string> changed_environment(const std::vector<std::string>& environment,
                                             const std::vector<std::string>& changes) {
  std::map<std::string_view, std::string_view> values;
  const auto set = [&values](std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) return false;
    values[text.substr(0, equals)] = text.substr(equals + 1);
    return true;
  };
  for (const std::string& text : environment) (void)set(text);  // what is no variable is left out
  for (const std::string& text : changes) {
    if (!set(text)) values.erase(text);
  }
  std::vector<std::string> list;
  for (const auto& [name, value] : values) {
    list.push_back(std::string(name).append("=").append(value));
  }
  return list;
}

}  // namespace gflow
