// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/refusal.h"
#include "base/result.h"
#include "core/job_id.h"

/// The documents of /api/v1/gpu: GPUs for programs that train, as the guide of the GPU resource
/// manager has them. Memory is in GB of 2^30 bytes, ratios are from 0 to 1, times are those of this
/// machine's clock without a zone ("2024-01-01T12:00:00"). docs/rest.md describes them.
namespace gflow::api {

/// That an allocation may have to live, as any job.
/// Memory of a GPU that can be asked for, in GB.
constexpr std::int64_t kMostGb = std::int64_t{1} << 20;
constexpr std::chrono::seconds kLongestTtl{std::int64_t{10} * 365 * 86400};

/// Measured, of all devices that tell; null where none does.
struct GpuUtilization {
  std::optional<double> gpu_utilization;
  std::optional<double> gpu_memory_usage;
};

/// The GPUs of one model on a node.
struct GpuNode {
  std::string node_name;
  std::string gpu_type;    ///< "V100"; "" if the model has no name
  int available_gpus = 0;  ///< that a job could have wholly now
  int total_gpus = 0;
  std::optional<double> memory_per_gpu;
  std::optional<double> utilization;  ///< measured, mean of these GPUs
  std::vector<int> gpus;              ///< indices of those available
};

/// The answer to GET /api/v1/gpu/status, and without `utilization` to GET /api/v1/gpu/nodes.
struct GpuStatus {
  std::optional<GpuUtilization> utilization;
  std::vector<GpuNode> available_nodes;
  int total_nodes = 0;
  std::string timestamp;
};

/// The body of allocate, validate, setup-tensorflow and setup-pytorch: what a program needs.
struct GpuNeed {
  int gpu_count = 1;
  std::string gpu_type;  ///< a model, a vendor, or models with "|" between; "" and "any" are any
  double memory_gb = 0;  ///< of each GPU; 0: any
  double compute_ratio = 1;  ///< of each GPU
  bool distributed_training = false;
  bool mixed_precision = true;
  double gpu_memory_fraction = 0.9;  ///< of the memory it gets, that the framework may take
  /// In place of the first four: as --gpus takes it, "2(V100),8G".
  std::string gpus;
  bool wait = false;             ///< in the queue where nothing is free
  std::int64_t ttl_seconds = 0;  ///< given back after so long; 0: as [limits] allocation_ttl says
  int pid = 0;                   ///< given back when this process ends; 0: none
  int wait_pid = 0;              ///< leaves the queue when this process ends; 0: none
  JobId allocation_id;           ///< set up for this one instead of a new one; 0: a new one
};

/// A device of an allocation.
struct GrantedGpu {
  int index = 0;
  std::string uuid;
  std::string gpu_type;
  double compute_ratio = 1;
  std::optional<double> memory_gb;  ///< it may use
};

/// What was asked for and what was got.
struct GpuConfig {
  int gpu_count = 1;
  std::string gpu_type;
  std::optional<double> memory_gb;
  double compute_ratio = 1;
  // What the framework is to do, as whoever sets it up says; an allocation has none of it.
  std::optional<bool> distributed_training;
  std::optional<bool> mixed_precision;
  std::optional<double> gpu_memory_fraction;
  std::vector<GrantedGpu> devices;
  std::vector<std::pair<std::string, std::string>>
      environment;  ///< makes a program see these devices only
};

/// What PyTorch is to be told.
struct PytorchConfig {
  std::vector<std::string> devices;  ///< "cuda:0"; "cpu" where there are none
  double memory_fraction = 0.9;      ///< torch.cuda.set_per_process_memory_fraction
  bool amp = true;                   ///< torch.autocast
  bool distributed = false;
  std::string backend;      ///< "nccl", "gloo"
  std::string init_method;  ///< "env://"; "" if it is not distributed
  int world_size = 1;
};

/// What TensorFlow is to be told.
struct TensorflowConfig {
  std::vector<std::string> devices;             ///< "/GPU:0"; "/CPU:0" where there are none
  bool memory_growth = true;                    ///< tf.config.experimental.set_memory_growth
  std::optional<std::int64_t> memory_limit_mb;  ///< LogicalDeviceConfiguration(memory_limit)
  std::string mixed_precision_policy;           ///< "mixed_float16", "float32"
  std::string strategy;                         ///< "MirroredStrategy", "OneDeviceStrategy"
};

/// The answer to allocate and to both setups, and of GET /api/v1/gpu/allocations/{id}.
struct GpuAllocation {
  bool success = false;
  std::string node_name;      ///< "" until it has one
  std::string error_message;  ///< "" if there is none
  JobId allocation_id;        ///< 0: there is none
  std::string state;          ///< of its job: "Queued", "Running"
  std::string owner;
  std::string expires_at;  ///< "" if it has no end
  std::optional<GpuConfig> gpu_config;
  std::optional<PytorchConfig> pytorch_config;
  std::optional<TensorflowConfig> tensorflow_config;
};

struct GpuAllocations {
  std::vector<GpuAllocation> allocations;
};

/// The answer to validate.
struct GpuValidation {
  bool valid = false;      ///< this machine can ever give it
  bool available = false;  ///< and could now
  std::string error_message;
  std::string request;  ///< as --gpus takes it
};

/// The answer to DELETE cleanup/{node_name}.
struct GpuCleanup {
  bool success = false;
  std::string node_name;
  int gpu_count = 0;  ///< given back
  std::vector<JobId> released;
};

/// The body of POST allocations/{id}/renew.
struct GpuRenewal {
  std::int64_t ttl_seconds = 0;
};

/// A device as it is measured. Null is not known.
struct MonitoredGpu {
  int index = 0;
  std::string uuid;
  std::string gpu_type;
  bool available = false;
  std::string trouble;  ///< why nothing starts on it; "" if all is well
  std::optional<double> gpu_utilization;
  std::optional<double> gpu_memory_usage;
  std::optional<double> memory_used_gb;
  std::optional<double> memory_total_gb;
  std::optional<int> temperature_celsius;
  std::optional<double> power_watts;
  std::vector<JobId> jobs;
  int processes = 0;  ///< that are not gflow's
};
struct MonitoredNode {
  std::string node_name;
  std::vector<MonitoredGpu> gpus;
};
/// The answer to GET /api/v1/gpu/monitoring.
struct GpuMonitoring {
  GpuUtilization utilization;
  std::vector<MonitoredNode> nodes;
  std::string timestamp;
};

/// The answer to GET /api/v1/gpu/health.
struct GpuHealth {
  std::string status;  ///< "healthy", "degraded" (nothing starts on some devices), "unhealthy"
  bool initialized = false;
  int total_gpus = 0;
  int usable_gpus = 0;
  int total_nodes = 0;
  std::vector<std::string> problems;
  std::string timestamp;
};

[[nodiscard]] std::string write(const GpuStatus& status);
[[nodiscard]] std::string write(const GpuAllocation& allocation);
[[nodiscard]] std::string write(const GpuAllocations& allocations);
[[nodiscard]] std::string write(const GpuValidation& validation);
[[nodiscard]] std::string write(const GpuCleanup& cleanup);
[[nodiscard]] std::string write(const GpuMonitoring& monitoring);
[[nodiscard]] std::string write(const GpuHealth& health);
[[nodiscard]] std::string write(const GpuNeed& need);
/// Errors: Usage with the JSON pointer of what is wrong.
[[nodiscard]] Asked<GpuNeed> read_gpu_need(std::string_view json);
[[nodiscard]] Asked<GpuRenewal> read_gpu_renewal(std::string_view json);
[[nodiscard]] Result<GpuAllocation> read_gpu_allocation(std::string_view json);

}  // namespace gflow::api
