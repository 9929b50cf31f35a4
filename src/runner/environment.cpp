// SPDX-License-Identifier: Apache-2.0
#include "runner/environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "base/text.h"

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
constexpr std::array<const char*, 10> kNotInherited = {"GFLOW_JOB_CONFIG",
                                                       "GFLOW_CPUS",
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
}

void set_devices(Variables& variables, const Attempt& attempt, const Machine& machine) {
  std::vector<std::string> indices;
  std::vector<std::string> uuids;
  std::string vendor;
  for (const int gpu : attempt.allocation.gpus) {
    indices.push_back(std::to_string(gpu));
    const Device* device = find_device(machine, gpu);
    uuids.push_back(device == nullptr ? "" : device->uuid);
    if (device != nullptr && vendor.empty()) vendor = device->vendor;
  }
  const std::string list = join(indices, ",");
  variables.set("GFLOW_GPUS", static_cast<std::int64_t>(indices.size()));
  variables.set("GFLOW_GPU_INDICES", list);
  variables.set("GFLOW_GPU_UUIDS", join(uuids, ","));
  variables.set("GFLOW_GPU_VENDOR", vendor);
  variables.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  variables.set("CUDA_VISIBLE_DEVICES", list);
  if (vendor == "amd") {
    // Two filters one after the other leave nothing: only ROCR_VISIBLE_DEVICES, as AMD says for
    // Linux.
    variables.set("ROCR_VISIBLE_DEVICES", list);
    for (const char* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}) {
      variables.unset(name);
    }
  }
  if (vendor == "ascend") variables.set("ASCEND_RT_VISIBLE_DEVICES", list);
  if (vendor == "intel") {
    variables.set("ZE_AFFINITY_MASK", list);
    variables.set("ZE_ENABLE_PCI_ID_DEVICE_ORDER", "1");
  }
}

void set_limits(Variables& variables, const JobSpec& spec) {
  if (spec.request.cpus > 0) variables.set("GFLOW_CPUS", spec.request.cpus);
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
  variables.set("PET_NNODES", 1);
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
  set_devices(variables, attempt, machine);
  set_limits(variables, job.spec);
  set_rendezvous(variables, attempt, surroundings);
  variables.set("GFLOW_API", surroundings.socket);
  variables.set("GFLOW_LOG_FILE", surroundings.log_path);
  if (!surroundings.config_path.empty()) {
    variables.set("GFLOW_JOB_CONFIG", surroundings.config_path);
  }
  return variables.list();
}

}  // namespace gflow::runner
