// SPDX-License-Identifier: Apache-2.0
#include "server/framework_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/listen_address.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "core/find_device.h"
#include "core/gpu_request.h"
#include "core/launch.h"
#include "os/tcp.h"
#include "server/gpu_nodes.h"

namespace gflow::server {
namespace {

/// As frameworks call the devices of a vendor, and what their processes talk through.
struct VendorNames {
  std::string_view vendor;
  std::string_view torch;
  std::string_view backend;
};
constexpr std::array<VendorNames, 4> kVendors = {{{"nvidia", "cuda", "nccl"},
                                                  {"amd", "cuda", "nccl"},
                                                  {"intel", "xpu", "ccl"},
                                                  {"ascend", "npu", "hccl"}}};

const VendorNames& names_of(const api::GpuConfig& config, const Machine& machine) {
  const Device* first =
      config.devices.empty() ? nullptr : find_device(machine, config.devices.front().index);
  const auto found =
      std::ranges::find(kVendors, first == nullptr ? "" : first->vendor, &VendorNames::vendor);
  return found == kVendors.end() ? kVendors.front() : *found;
}

/// What it may use of a device: what is reserved for it, else all of one it has wholly, and of one
/// it has a share of as much as its share, so that all who have one get along.
std::optional<Memory> memory_granted(const gflow::Request& request, const Device* device) {
  if (request.mode != GpuMode::Whole && request.gpu_memory > Memory{}) return request.gpu_memory;
  if (device == nullptr || !device->memory_total) return std::nullopt;
  return Memory{device->memory_total->bytes / Share::kWholeParts * request.share.parts};
}

/// Of the GPUs of an allocation the one with the least that can be used of it.
std::optional<double> least_memory(const api::GpuConfig& config) {
  std::optional<double> least;
  for (const api::GrantedGpu& gpu : config.devices) {
    if (gpu.memory_gb) least = std::min(least.value_or(*gpu.memory_gb), *gpu.memory_gb);
  }
  return least;
}

/// Which part of each of its GPUs it may use; none if that is not known.
std::optional<double> least_part(const api::GpuConfig& config, const Machine& machine) {
  std::optional<double> least;
  for (const api::GrantedGpu& gpu : config.devices) {
    const Device* device = find_device(machine, gpu.index);
    if (device == nullptr || !device->memory_total || !gpu.memory_gb) continue;
    const double part = std::min(1.0, *gpu.memory_gb / gb_of(*device->memory_total));
    least = std::min(least.value_or(part), part);
  }
  return least;
}

/// Of memory: what is rounded to nothing would stop the framework at its first allocation, or be
/// read as no limit.
Error too_little(std::string_view least) {
  return {
      Code::Usage,
      tr_format("what the framework may take of each GPU's memory is less than {}, the least it "
                "can be told: raise gpu_memory_fraction, memory_gb or compute_ratio",
                least)};
}

bool is_of_gflow(std::string_view variable) {
  return variable.starts_with("GFLOW_") || variable.starts_with("PET_");
}

}  // namespace

api::GpuConfig config_of(const Job& job, const Attempt& attempt, const Machine& machine) {
  const gflow::Request& request = job.spec.request;
  api::GpuConfig config;
  config.gpu_count = static_cast<int>(attempt.allocation.gpus.size());
  config.compute_ratio = request.share.parts / static_cast<double>(Share::kWholeParts);
  for (const int index : attempt.allocation.gpus) {
    const Device* device = find_device(machine, index);
    api::GrantedGpu& gpu = config.devices.emplace_back();
    gpu.index = index;
    gpu.compute_ratio = config.compute_ratio;
    if (device != nullptr) {
      gpu.uuid = device->uuid;
      gpu.gpu_type = catalogue::short_model(device->vendor, device->model);
    }
    if (const auto memory = memory_granted(request, device)) gpu.memory_gb = gb_of(*memory);
  }
  if (!config.devices.empty()) {
    config.gpu_type = config.devices.front().gpu_type;
    config.memory_gb = least_memory(config);
  }
  for (const std::string& variable : launch_environment(job, attempt, machine)) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || is_of_gflow(variable)) continue;
    config.environment.emplace_back(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return config;
}

/// How many of its devices a program sees: of MIG devices the first.
int devices_seen(const api::GpuConfig& config, const Machine& machine) {
  const auto is_slice = [&machine](const auto& one) {
    const Device* const device = find_device(machine, one.index);
    return device != nullptr && device->mig.has_value();
  };
  return std::ranges::any_of(config.devices, is_slice) ? std::min(config.gpu_count, 1)
                                                       : config.gpu_count;
}

Result<api::PytorchConfig> pytorch_config(const api::GpuNeed& need,
                                          const api::GpuConfig& config,
                                          const Machine& machine) {
  constexpr double kDigits = 10'000;
  const VendorNames& names = names_of(config, machine);
  api::PytorchConfig torch;
  for (int i = 0; i < devices_seen(config, machine); ++i) {
    torch.devices.push_back(fmt::format("{}:{}", names.torch, i));
  }
  torch.backend = config.gpu_count == 0 ? "gloo" : names.backend;
  if (torch.devices.empty()) torch.devices.emplace_back("cpu");
  torch.memory_fraction = need.gpu_memory_fraction;
  // PyTorch takes a part of the whole device, of which a part may be its own.
  if (const auto its = least_part(config, machine)) {
    torch.memory_fraction = std::floor(*its * need.gpu_memory_fraction * kDigits) / kDigits;
  }
  if (config.gpu_count > 0 && torch.memory_fraction < 1 / kDigits) {
    return std::unexpected(too_little(fmt::format("{}", 1 / kDigits)));
  }
  torch.amp = need.mixed_precision && config.gpu_count > 0;
  torch.distributed = need.distributed_training;
  torch.world_size = torch.distributed ? std::max(config.gpu_count, 1) : 1;
  if (torch.distributed) torch.init_method = "env://";
  return torch;
}

Result<api::TensorflowConfig> tensorflow_config(const api::GpuNeed& need,
                                                const api::GpuConfig& config,
                                                const Machine& machine) {
  api::TensorflowConfig tensorflow;
  const int seen = devices_seen(config, machine);
  for (int i = 0; i < seen; ++i) {
    tensorflow.devices.push_back(fmt::format("/GPU:{}", i));
  }
  if (tensorflow.devices.empty()) tensorflow.devices.emplace_back("/CPU:0");
  if (config.memory_gb && config.gpu_count > 0) {
    constexpr double kMbPerGb = 1024;
    tensorflow.memory_limit_mb = static_cast<std::int64_t>(
        std::floor(*config.memory_gb * kMbPerGb * need.gpu_memory_fraction));
    if (*tensorflow.memory_limit_mb == 0) return std::unexpected(too_little("1 MiB"));
  }
  // TensorFlow refuses both for one device.
  tensorflow.memory_growth = !tensorflow.memory_limit_mb;
  const bool mixed = need.mixed_precision && config.gpu_count > 0;
  tensorflow.mixed_precision_policy = mixed ? "mixed_float16" : "float32";
  tensorflow.strategy = seen > 1 ? "MirroredStrategy" : "OneDeviceStrategy";
  return tensorflow;
}

Result<void> add_rendezvous(PortBlock own, api::GpuConfig& config) {
  ListenAddress address{"127.0.0.1", static_cast<std::uint16_t>(own.base)};
  if (own.count == 0) (void)GF_TRY(os::listen_tcp(address));  // free again when this returns
  config.environment.emplace_back("MASTER_ADDR", address.host);
  config.environment.emplace_back("MASTER_PORT", std::to_string(address.port));
  config.environment.emplace_back("WORLD_SIZE", std::to_string(std::max(config.gpu_count, 1)));
  return {};
}

}  // namespace gflow::server
