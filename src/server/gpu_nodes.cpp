// SPDX-License-Identifier: Apache-2.0
#include "server/gpu_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "base/translate.h"
#include "core/catalogue.h"
#include "os/clock.h"

namespace gflow::server {
namespace {

/// A ratio of sums, of what was measured alone.
class Mean {
 public:
  void add(double part, double whole = 1) {
    part_ += part;
    whole_ += whole;
  }
  [[nodiscard]] std::optional<double> value() const {
    constexpr double kDigits = 10'000;
    if (whole_ <= 0) return std::nullopt;
    return std::round(part_ / whole_ * kDigits) / kDigits;
  }

 private:
  double part_ = 0;
  double whole_ = 0;
};

void add_use(Mean& mean, const Device& device) {
  if (device.utilization_percent) mean.add(*device.utilization_percent / 100.0);
}

void add_memory(Mean& mean, const Device& device) {
  if (!device.memory_used || !device.memory_total) return;
  mean.add(static_cast<double>(device.memory_used->bytes),
           static_cast<double>(device.memory_total->bytes));
}

/// What GPUs of a node that are told of together have in common.
struct GpuKind {
  std::string type;
  std::optional<double> gb;  ///< none: it is not known

  friend bool operator==(const GpuKind&, const GpuKind&) = default;
};

GpuKind kind_of(const api::DeviceView& device) {
  const auto& memory = device.device.memory_total;
  return {gpu_type_of(device), memory ? std::optional(gb_of(*memory)) : std::nullopt};
}

api::GpuNode gpu_node_of(const api::NodeView& node, const GpuKind& kind) {
  api::GpuNode entry{.node_name = node.name, .gpu_type = kind.type, .memory_per_gpu = kind.gb};
  Mean use;
  for (const api::DeviceView& device : node.devices) {
    if (kind_of(device) != kind) continue;
    ++entry.total_gpus;
    add_use(use, device.device);
    if (device.available()) entry.gpus.push_back(device.device.index);
  }
  entry.available_gpus = static_cast<int>(entry.gpus.size());
  entry.utilization = use.value();
  return entry;
}

api::MonitoredGpu monitored(const api::DeviceView& view) {
  const Device& device = view.device;
  api::MonitoredGpu gpu;
  gpu.index = device.index;
  gpu.uuid = device.uuid;
  gpu.gpu_type = gpu_type_of(view);
  gpu.available = view.available();
  gpu.trouble =
      device.trouble.empty() && view.drained ? drained_text(view.drained_reason) : device.trouble;
  Mean use;
  add_use(use, device);
  gpu.gpu_utilization = use.value();
  Mean memory;
  add_memory(memory, device);
  gpu.gpu_memory_usage = memory.value();
  if (device.memory_used) gpu.memory_used_gb = gb_of(*device.memory_used);
  if (device.memory_total) gpu.memory_total_gb = gb_of(*device.memory_total);
  gpu.temperature_celsius = device.temperature_celsius;
  if (device.power_milliwatts) gpu.power_watts = *device.power_milliwatts / 1000.0;
  gpu.jobs = view.jobs;
  gpu.processes = static_cast<int>(view.foreign.size());
  return gpu;
}

/// Why nothing starts on it that is not said of its node; "" if there is nothing.
std::string problem_of(const api::NodeView& node, const api::DeviceView& view) {
  const int index = view.device.index;
  if (!view.device.usable && view.device.trouble != node.note) {
    return tr_format("{}: GPU {}: {}", node.name, index, tr(view.device.trouble));
  }
  if (!view.drained || node.drained) return "";
  return tr_format("{}: GPU {}: {}", node.name, index, drained_text(view.drained_reason));
}

/// Of a node itself.
void add_problems(std::vector<std::string>& problems, const api::NodeView& node) {
  if (!node.unreachable.empty()) problems.push_back(node.name + ": " + node.unreachable);
  if (!node.note.empty() && node.source != "none") {
    problems.push_back(node.name + ": " + tr(node.note));
  }
  if (node.drained) {
    problems.push_back(tr_format("{}: {}", node.name, drained_text(node.drained_reason)));
  }
}

}  // namespace

std::string timestamp_of(WallTime time) {
  constexpr std::size_t kWithoutZone = std::string_view("2024-01-01T12:00:00").size();
  return rfc3339(time + os::utc_offset(time)).substr(0, kWithoutZone);
}

double gb_of(Memory memory) {
  constexpr double kHundredths = 100;
  const double gb = static_cast<double>(memory.bytes) / static_cast<double>(1 << 30);
  return std::round(gb * kHundredths) / kHundredths;
}

std::string gpu_type_of(const api::DeviceView& device) {
  return std::string(catalogue::without_size(device.model_short));
}

/// No GPU is no trouble where none is plugged in; a driver that tells of none where one is, is.
std::optional<Error> check_devices_known(const std::vector<api::NodeView>& nodes) {
  if (nodes.empty()) return Error{Code::Unreachable, tr("no node has told of its GPUs yet")};
  bool has_device = false;
  for (const api::NodeView& node : nodes) {
    for (const api::DeviceView& device : node.devices) {
      has_device = true;
      if (device.device.usable) return std::nullopt;
    }
  }
  const std::string& why = nodes.front().note;
  const bool is_silent = nodes.front().source == "nvml" && !why.empty();
  if (!has_device && !is_silent) return std::nullopt;
  return Error{Code::Unreachable,
               tr_format("no GPU answers: {}", why.empty() ? tr("none can be used") : tr(why))};
}

api::GpuUtilization utilization_of(const std::vector<api::NodeView>& nodes) {
  Mean use;
  Mean memory;
  for (const api::NodeView& node : nodes) {
    for (const api::DeviceView& device : node.devices) {
      add_use(use, device.device);
      add_memory(memory, device.device);
    }
  }
  return {use.value(), memory.value()};
}

std::vector<api::GpuNode> gpu_nodes_of(const std::vector<api::NodeView>& nodes) {
  std::vector<api::GpuNode> entries;
  for (const api::NodeView& node : nodes) {
    std::vector<GpuKind> kinds;
    for (const api::DeviceView& device : node.devices) {
      const GpuKind kind = kind_of(device);
      if (std::ranges::find(kinds, kind) != kinds.end()) continue;
      kinds.push_back(kind);
      entries.push_back(gpu_node_of(node, kind));
    }
  }
  return entries;
}

std::vector<api::MonitoredNode> monitored(const std::vector<api::NodeView>& nodes) {
  std::vector<api::MonitoredNode> all;
  for (const api::NodeView& node : nodes) {
    api::MonitoredNode& one = all.emplace_back(api::MonitoredNode{.node_name = node.name});
    for (const api::DeviceView& device : node.devices) one.gpus.push_back(monitored(device));
  }
  return all;
}

api::GpuHealth health_of(const std::vector<api::NodeView>& nodes,
                         const std::vector<api::UnhealthyNode>& unhealthy) {
  api::GpuHealth health;
  health.total_nodes = static_cast<int>(nodes.size());
  bool are_cut = true;  // those of which slices are made
  for (const api::NodeView& node : nodes) {
    add_problems(health.problems, node);
    const bool is_reached = node.unreachable.empty();
    for (const api::DeviceView& device : node.devices) {
      ++health.total_gpus;
      if (device.device.usable && !device.drained && is_reached) ++health.usable_gpus;
      const std::string problem = problem_of(node, device);
      if (!problem.empty()) health.problems.push_back(problem);
    }
    for (const api::MigRoomView& room : node.mig_room) {
      const std::string why = room.drained ? drained_text(room.drained_reason) : room.trouble;
      if (why.empty()) continue;
      are_cut = false;
      health.problems.push_back(fmt::format("{}: {}: {}", node.name, room.gpu, why));
    }
  }
  for (const api::UnhealthyNode& node : unhealthy) {
    health.problems.push_back(tr_format("{}: launches fail: {}", node.node, node.reason));
  }
  health.initialized = !check_devices_known(nodes);
  const bool is_whole = health.usable_gpus == health.total_gpus && are_cut && unhealthy.empty();
  health.status = !health.initialized ? "unhealthy" : is_whole ? "healthy" : "degraded";
  return health;
}

}  // namespace gflow::server
