// SPDX-License-Identifier: Apache-2.0
#include "api/gpu_resources.h"

#include <array>
#include <cstdint>
#include <optional>

#include "api/documents.h"
#include "api/json_reader.h"
#include "api/json_writer.h"
#include "api/schema_writer.h"
#include "base/share.h"

namespace gflow::api {
namespace {

constexpr Range kGpuCount = {1, 1024};
constexpr Range kPids = {0, INT32_MAX};
/// A share has four decimals: a smaller one is none.
constexpr Bounds kShare = {.least = 1.0 / Share::kWholeParts, .most = 1};
constexpr Bounds kRatio = {.least = 0, .most = 1, .at = Bounds::Least::Excluded};
constexpr Bounds kGb = {.least = 0, .most = kMostGb};
constexpr std::array<std::string_view, 3> kHealth = {"healthy", "degraded", "unhealthy"};
constexpr Range kTtl = {0, kLongestTtl.count()};

}  // namespace

template <>
inline constexpr std::string_view kSchemaName<GpuUtilization> = "GpuUtilization";
template <class Io, Like<GpuUtilization> T>
void fields(Io& io, T& use) {
  io.field("gpu_utilization", use.gpu_utilization);
  io.field("gpu_memory_usage", use.gpu_memory_usage);
}

template <>
inline constexpr std::string_view kSchemaName<GpuNode> = "GpuNode";
template <class Io, Like<GpuNode> T>
void fields(Io& io, T& node) {
  io.field("node_name", node.node_name);
  io.field("gpu_type", node.gpu_type);
  io.field("available_gpus", node.available_gpus);
  io.field("total_gpus", node.total_gpus);
  io.field("memory_per_gpu", node.memory_per_gpu);
  io.field("utilization", node.utilization);
  io.field("gpus", node.gpus);
}

template <class Io, Like<GpuStatus> T>
void fields(Io& io, T& status) {
  io.if_any("utilization", status.utilization);
  io.field("available_nodes", status.available_nodes);
  io.field("total_nodes", status.total_nodes);
  io.field("timestamp", status.timestamp);
}

/// Null for none.
template <class Io, class Pid>
void process_field(Io& io, std::string_view name, Pid& pid) {
  std::optional<int> process;
  if (pid != 0) process = pid;
  io.field(name, process, kPids);
  if constexpr (!std::is_const_v<Pid>) pid = process.value_or(0);
}

template <class Io, Like<GpuNeed> T>
void fields(Io& io, T& need) {
  io.defaulted("gpu_count", need.gpu_count, kGpuCount);
  io.defaulted("gpu_type", need.gpu_type);
  io.between("memory_gb", need.memory_gb, kGb);
  io.between("compute_ratio", need.compute_ratio, kShare);
  io.defaulted("distributed_training", need.distributed_training);
  io.defaulted("mixed_precision", need.mixed_precision);
  io.between("gpu_memory_fraction", need.gpu_memory_fraction, kRatio);
  io.known_text("gpus", need.gpus);
  io.defaulted("wait", need.wait);
  io.defaulted("ttl_seconds", need.ttl_seconds, kTtl);
  process_field(io, "pid", need.pid);
  process_field(io, "wait_pid", need.wait_pid);
  std::optional<JobId> allocation;
  if (need.allocation_id.value != 0) allocation = need.allocation_id;
  io.field("allocation_id", allocation);
  if constexpr (!std::is_const_v<T>) need.allocation_id = allocation.value_or(JobId{});
}

template <>
inline constexpr std::string_view kSchemaName<GrantedGpu> = "GrantedGpu";
template <class Io, Like<GrantedGpu> T>
void fields(Io& io, T& gpu) {
  io.field("index", gpu.index);
  io.field("uuid", gpu.uuid);
  io.field("gpu_type", gpu.gpu_type);
  io.field("compute_ratio", gpu.compute_ratio);
  io.field("memory_gb", gpu.memory_gb);
}

template <>
inline constexpr std::string_view kSchemaName<GpuConfig> = "GpuConfig";
template <class Io, Like<GpuConfig> T>
void fields(Io& io, T& config) {
  io.field("gpu_count", config.gpu_count);
  io.field("gpu_type", config.gpu_type);
  io.field("memory_gb", config.memory_gb);
  io.field("compute_ratio", config.compute_ratio);
  io.if_any("distributed_training", config.distributed_training);
  io.if_any("mixed_precision", config.mixed_precision);
  io.if_any("gpu_memory_fraction", config.gpu_memory_fraction);
  io.field("devices", config.devices);
  io.text_map("environment", config.environment);
}

template <>
inline constexpr std::string_view kSchemaName<PytorchConfig> = "PytorchConfig";
template <class Io, Like<PytorchConfig> T>
void fields(Io& io, T& config) {
  io.field("devices", config.devices);
  io.field("memory_fraction", config.memory_fraction);
  io.field("amp", config.amp);
  io.field("distributed", config.distributed);
  io.field("backend", config.backend);
  io.known_text("init_method", config.init_method);
  io.field("world_size", config.world_size);
}

template <>
inline constexpr std::string_view kSchemaName<TensorflowConfig> = "TensorflowConfig";
template <class Io, Like<TensorflowConfig> T>
void fields(Io& io, T& config) {
  io.field("devices", config.devices);
  io.field("memory_growth", config.memory_growth);
  io.field("memory_limit_mb", config.memory_limit_mb);
  io.field("mixed_precision_policy", config.mixed_precision_policy);
  io.field("strategy", config.strategy);
}

template <>
inline constexpr std::string_view kSchemaName<GpuAllocation> = "GpuAllocation";
template <class Io, Like<GpuAllocation> T>
void fields(Io& io, T& allocation) {
  io.required("success", allocation.success);
  io.known_text("node_name", allocation.node_name);
  io.known_text("error_message", allocation.error_message);
  std::optional<JobId> id;
  if (allocation.allocation_id.value != 0) id = allocation.allocation_id;
  io.field("allocation_id", id);
  if constexpr (!std::is_const_v<T>) allocation.allocation_id = id.value_or(JobId{});
  io.known_text("state", allocation.state);
  io.known_text("owner", allocation.owner);
  io.known_text("expires_at", allocation.expires_at);
  io.field("gpu_config", allocation.gpu_config);
  io.if_any("pytorch_config", allocation.pytorch_config);
  io.if_any("tensorflow_config", allocation.tensorflow_config);
}

template <class Io, Like<GpuAllocations> T>
void fields(Io& io, T& all) {
  io.field("allocations", all.allocations);
}

template <class Io, Like<GpuValidation> T>
void fields(Io& io, T& validation) {
  io.field("valid", validation.valid);
  io.field("available", validation.available);
  io.known_text("error_message", validation.error_message);
  io.known_text("request", validation.request);
}

template <class Io, Like<GpuCleanup> T>
void fields(Io& io, T& cleanup) {
  io.field("success", cleanup.success);
  io.field("node_name", cleanup.node_name);
  io.field("gpu_count", cleanup.gpu_count);
  io.field("released", cleanup.released);
}

template <class Io, Like<GpuRenewal> T>
void fields(Io& io, T& renewal) {
  io.required("ttl_seconds", renewal.ttl_seconds, Range{1, kTtl.most});
}

template <>
inline constexpr std::string_view kSchemaName<MonitoredGpu> = "MonitoredGpu";
template <class Io, Like<MonitoredGpu> T>
void fields(Io& io, T& gpu) {
  io.field("index", gpu.index);
  io.field("uuid", gpu.uuid);
  io.field("gpu_type", gpu.gpu_type);
  io.field("available", gpu.available);
  io.known_text("trouble", gpu.trouble);
  io.field("gpu_utilization", gpu.gpu_utilization);
  io.field("gpu_memory_usage", gpu.gpu_memory_usage);
  io.field("memory_used_gb", gpu.memory_used_gb);
  io.field("memory_total_gb", gpu.memory_total_gb);
  io.field("temperature_celsius", gpu.temperature_celsius);
  io.field("power_watts", gpu.power_watts);
  io.field("jobs", gpu.jobs);
  io.field("processes", gpu.processes);
}

template <>
inline constexpr std::string_view kSchemaName<MonitoredNode> = "MonitoredNode";
template <class Io, Like<MonitoredNode> T>
void fields(Io& io, T& node) {
  io.field("node_name", node.node_name);
  io.field("gpus", node.gpus);
}

template <class Io, Like<GpuMonitoring> T>
void fields(Io& io, T& monitoring) {
  io.field("utilization", monitoring.utilization);
  io.field("nodes", monitoring.nodes);
  io.field("timestamp", monitoring.timestamp);
}

template <class Io, Like<GpuHealth> T>
void fields(Io& io, T& health) {
  io.choice("status", health.status, kHealth);
  io.field("initialized", health.initialized);
  io.field("total_gpus", health.total_gpus);
  io.field("usable_gpus", health.usable_gpus);
  io.field("total_nodes", health.total_nodes);
  io.field("problems", health.problems);
  io.field("timestamp", health.timestamp);
}

std::string write(const GpuStatus& status) { return Writer::document("GpuStatus", status); }
std::string write(const GpuAllocation& allocation) {
  return Writer::document("GpuAllocation", allocation);
}
std::string write(const GpuAllocations& allocations) {
  return Writer::document("GpuAllocations", allocations);
}
std::string write(const GpuValidation& validation) {
  return Writer::document("GpuValidation", validation);
}
std::string write(const GpuCleanup& cleanup) { return Writer::document("GpuCleanup", cleanup); }
std::string write(const GpuMonitoring& monitoring) {
  return Writer::document("GpuMonitoring", monitoring);
}
std::string write(const GpuHealth& health) { return Writer::document("GpuHealth", health); }
std::string write(const GpuNeed& need) { return Writer::document("GpuNeed", need); }

Asked<GpuNeed> read_gpu_need(std::string_view json) {
  return Reader::request<GpuNeed>(json, "GpuNeed");
}

Asked<GpuRenewal> read_gpu_renewal(std::string_view json) {
  return Reader::request<GpuRenewal>(json, "GpuRenewal");
}

Result<GpuAllocation> read_gpu_allocation(std::string_view json) {
  return Reader::answer<GpuAllocation>(json, "GpuAllocation");
}

void describe_gpu_resources(Schemas& schemas) {
  schemas.document<GpuStatus>("GpuStatus", Form::Answer);
  schemas.document<GpuNeed>("GpuNeed", Form::Request);
  schemas.document<GpuAllocation>("GpuAllocation", Form::Answer);
  schemas.document<GpuAllocations>("GpuAllocations", Form::Answer);
  schemas.document<GpuValidation>("GpuValidation", Form::Answer);
  schemas.document<GpuCleanup>("GpuCleanup", Form::Answer);
  schemas.document<GpuRenewal>("GpuRenewal", Form::Request);
  schemas.document<GpuMonitoring>("GpuMonitoring", Form::Answer);
  schemas.document<GpuHealth>("GpuHealth", Form::Answer);
}

}  // namespace gflow::api
