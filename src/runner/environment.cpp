// SPDX-License-Identifier: Apache-2.0
#include "runner/environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "base/share.h"
#include "base/text.h"
#include "core/cpu_list.h"

namespace gflow::runner {
namespace {

/// Variables by name; setting one replaces it.
class Variables {
 public:
  explicit Variables(const std::vector<std::string>& submitted) {
    for (const std::string& text : submitted) {
      const std::size_t equals = text.find('=');
      if (equals != std::string::npos && equals > 0) {
        values_[text.substr(0, equals)] = text.substr(equals + 1);
      }
    }
  }
  void set(const std::string& name, std::string value) { values_[name] = std::move(value); }
  void set(const std::string& name, std::int64_t value) { set(name, std::to_string(value)); }
  void unset(const std::string& name) { values_.erase(name); }
  [[nodiscard]] std::vector<std::string> list() const {
    std::vector<std::string> list;
    for (const auto& [name, value] : values_) list.push_back(name + "=" + value);
    return list;
  }

 private:
  std::map<std::string, std::string> values_;
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

const Device* find_device(const Machine& machine, int index) {
  const auto found = std::ranges::find(machine.devices, index, &Device::index);
  return found == machine.devices.end() ? nullptr : &*found;
}

void set_identity(Variables& variables, const Job& job, const Attempt& attempt) {
  variables.set("GFLOW_JOB_ID", std::to_string(job.id.value));
  variables.set("GFLOW_JOB_NAME", job.spec.name);
  variables.set("GFLOW_JOB_USER", job.spec.user.name);
  variables.set("GFLOW_PROJECT", job.spec.project);
  variables.set("GFLOW_SUBMIT_DIR", job.spec.work_dir);
  variables.set("GFLOW_ATTEMPT", attempt.number);
  variables.set("GFLOW_RESTART_COUNT", std::max(attempt.number - 1, 0));
  variables.set("GFLOW_PREEMPTIONS", job.preemptions);
}

/// What the libraries of a vendor read to see only some of its devices. They count only those of
/// their vendor, in PCI order.
struct VendorVariables {
  std::string_view vendor;
  const char* visible;
  /// An empty list hides all devices; where it does not, a job without devices is not kept from
  /// seeing them.
  bool empty_hides;
};
constexpr std::array<VendorVariables, 4> kVendors = {{
    {"nvidia", "CUDA_VISIBLE_DEVICES", true},
    {"amd", "ROCR_VISIBLE_DEVICES", true},
    {"ascend", "ASCEND_RT_VISIBLE_DEVICES", false},
    {"intel", "ZE_AFFINITY_MASK", false},
}};

/// Positions of these devices among those of their vendor.
std::string vendor_list(const Machine& machine,
                        const std::vector<int>& gpus,
                        std::string_view vendor) {
  std::vector<std::string> positions;
  int position = 0;
  for (const Device& device : machine.devices) {
    if (device.vendor != vendor) continue;
    if (std::ranges::find(gpus, device.index) != gpus.end()) {
      positions.push_back(std::to_string(position));
    }
    ++position;
  }
  return join(positions, ",");
}

bool has_vendor(const Machine& machine, std::string_view vendor) {
  return std::ranges::find(machine.devices, vendor, &Device::vendor) != machine.devices.end();
}

void set_visible(Variables& variables, const Machine& machine, const std::vector<int>& gpus) {
  variables.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  variables.set("CUDA_VISIBLE_DEVICES", "");
  for (const VendorVariables& row : kVendors) {
    if (!has_vendor(machine, row.vendor)) continue;
    const std::string list = vendor_list(machine, gpus, row.vendor);
    if (!list.empty() || row.empty_hides) variables.set(row.visible, list);
  }
  if (!vendor_list(machine, gpus, "amd").empty()) {
    // Two filters one after the other leave nothing: only ROCR_VISIBLE_DEVICES, as AMD says for
    // Linux.
    for (const char* name : {"HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}) variables.unset(name);
    if (vendor_list(machine, gpus, "nvidia").empty()) variables.unset("CUDA_VISIBLE_DEVICES");
  }
  if (has_vendor(machine, "intel")) variables.set("ZE_ENABLE_PCI_ID_DEVICE_ORDER", "1");
}

void set_devices(Variables& variables,
                 const Request& request,
                 const Attempt& attempt,
                 const Machine& machine) {
  std::vector<std::string> indices;
  std::vector<std::string> uuids;
  std::string vendor;
  for (const int gpu : attempt.allocation.gpus) {
    indices.push_back(std::to_string(gpu));
    const Device* device = find_device(machine, gpu);
    uuids.push_back(device == nullptr ? "" : device->uuid);
    if (device != nullptr && vendor.empty()) vendor = device->vendor;
  }
  variables.set("GFLOW_GPUS", static_cast<std::int64_t>(indices.size()));
  variables.set("GFLOW_GPU_INDICES", join(indices, ","));
  variables.set("GFLOW_GPU_UUIDS", join(uuids, ","));
  variables.set("GFLOW_GPU_VENDOR", vendor);
  variables.set("GFLOW_GPU_SHARE", share_text(indices.empty() ? Share{} : request.share));
  variables.set("GFLOW_GPU_MODE", std::string(indices.empty() ? "" : gpu_mode_name(request.mode)));
  if (request.gpu_memory.bytes > 0 && !indices.empty()) {
    variables.set("GFLOW_GPU_MEMORY_MIB", request.gpu_memory.bytes >> 20);
  }
  std::vector<int> visible = attempt.allocation.gpus;
  if (request.see_all) {
    for (const Device& device : machine.devices) visible.push_back(device.index);
  }
  set_visible(variables, machine, visible);
}

void set_nodes(Variables& variables, const Attempt& attempt, const std::string& host) {
  const auto name = [&host](const Allocation& part) {
    return part.node.empty() ? host : part.node;
  };
  std::vector<std::string> nodes = {name(attempt.allocation)};
  for (const Allocation& peer : attempt.peers) nodes.push_back(name(peer));
  variables.set("GFLOW_NODE", nodes.front());
  variables.set("GFLOW_NODELIST", join(nodes, ","));
  variables.set("GFLOW_NNODES", static_cast<std::int64_t>(nodes.size()));
  variables.set("GFLOW_NODE_RANK", 0);
}

void set_limits(Variables& variables, const JobSpec& spec, const Allocation& allocation) {
  if (spec.request.cpus > 0) variables.set("GFLOW_CPUS", spec.request.cpus);
  if (!allocation.cpus.empty()) variables.set("GFLOW_CPU_LIST", cpu_list_text(allocation.cpus));
  if (spec.request.memory.bytes > 0) {
    variables.set("GFLOW_MEMORY_MIB", spec.request.memory.bytes >> 20);
  }
  if (spec.time_limit) variables.set("GFLOW_TIME_LIMIT_SECONDS", spec.time_limit->count());
}

/// What torch.distributed and torchrun read. RANK, LOCAL_RANK and WORLD_SIZE belong to each
/// process: set here they would make a plain script believe it is one of several, and a submitter's
/// are of another run.
void set_rendezvous(Variables& variables, const Attempt& attempt, const Surroundings& around) {
  if (around.port_base == 0) return;
  constexpr const char* kAddress = "127.0.0.1";
  variables.set("GFLOW_PORT_BASE", around.port_base);
  variables.set("GFLOW_PORT_COUNT", around.port_count);
  variables.set("MASTER_ADDR", kAddress);
  variables.set("MASTER_PORT", around.port_base);
  variables.set("PET_MASTER_ADDR", kAddress);
  variables.set("PET_MASTER_PORT", around.port_base);
  variables.set("PET_NNODES", static_cast<std::int64_t>(1 + attempt.peers.size()));
  variables.set("PET_NODE_RANK", 0);
  const auto gpus = static_cast<std::int64_t>(attempt.allocation.gpus.size());
  variables.set("PET_NPROC_PER_NODE", std::max<std::int64_t>(gpus, 1));
}

}  // namespace

std::vector<std::string> environment_of(const Job& job,
                                        const Attempt& attempt,
                                        const Payload& payload,
                                        const Machine& machine,
                                        const Surroundings& surroundings) {
  Variables variables(payload.environment);
  for (const char* name : kNotInherited) variables.unset(name);
  set_identity(variables, job, attempt);
  set_devices(variables, job.spec.request, attempt, machine);
  set_nodes(variables, attempt, surroundings.host);
  set_limits(variables, job.spec, attempt.allocation);
  set_rendezvous(variables, attempt, surroundings);
  variables.set("GFLOW_API", surroundings.socket);
  variables.set("GFLOW_LOG_FILE", surroundings.log_path);
  if (!surroundings.config_path.empty()) {
    variables.set("GFLOW_JOB_CONFIG", surroundings.config_path);
  }
  return variables.list();
}

}  // namespace gflow::runner
