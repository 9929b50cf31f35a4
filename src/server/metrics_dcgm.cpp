// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/find_device.h"
#include "server/metric_family.h"

/// GPUs as NVIDIA's dcgm-exporter shows them: its names, units and labels, so that its dashboards
/// and alerts work. A GPU with several jobs has a series for each, as there.
namespace gflow::server {
namespace {

/// "0000:3b:00.0" as "00000000:3B:00.0".
std::string bus_id(const std::string& address) {
  constexpr std::size_t kDomain = 8;
  const std::size_t colon = address.find(':');
  if (colon == std::string::npos || colon > kDomain) return address;
  std::string id = std::string(kDomain - colon, '0') + address;
  for (char& c : id) {
    if (c >= 'a' && c <= 'f') c = static_cast<char>(c - 'a' + 'A');
  }
  return id;
}

/// Of "NVIDIA A100 80GB PCIe MIG 1g.10gb" what is before the slice.
std::string model_of_gpu(const Device& device) {
  const std::size_t slice = device.mig ? device.model.find(" MIG ") : std::string::npos;
  return device.model.substr(0, slice);
}

std::vector<MetricLabels> label_sets(const api::NodeView& node, const api::DeviceView& view) {
  const Device& device = view.device;
  std::vector<const Device*> all;
  for (const api::DeviceView& one : node.devices) all.push_back(&one.device);
  const std::string index = std::to_string(gpu_number(device, all));
  MetricLabels own = {{"gpu", index},
                      {"UUID", device.mig ? device.mig->parent : device.uuid},
                      {"pci_bus_id", bus_id(device.pci_address)},
                      {"device", "nvidia" + index},
                      {"modelName", model_of_gpu(device)},
                      {"Hostname", node.name}};
  if (device.mig) {
    own.push_back({"GPU_I_PROFILE", device.mig->profile});
    own.push_back({"GPU_I_ID", std::to_string(device.mig->gpu_instance)});
    own.push_back({"compute_instance", std::to_string(device.mig->compute_instance)});  // ours
  }
  if (view.jobs.empty()) return {own};
  std::vector<MetricLabels> sets;
  for (const JobId job : view.jobs) {
    sets.push_back(own);
    sets.back().push_back({"hpc_job", std::to_string(job.value)});
  }
  return sets;
}

std::optional<double> mebibytes(const std::optional<Memory>& memory) {
  constexpr double kMebibyte = 1 << 20;
  if (!memory) return std::nullopt;
  return static_cast<double>(memory->bytes) / kMebibyte;
}

std::optional<Memory> free_of(const Device& device) {
  if (!device.memory_total || !device.memory_used) return std::nullopt;
  return Memory{device.memory_total->bytes - device.memory_used->bytes};
}

struct DcgmMetric {
  const char* name;
  const char* help;
  std::optional<double> (*value)(const Device&);
};
constexpr std::array kMetrics = {
    DcgmMetric{"DCGM_FI_DEV_GPU_UTIL",
               "GPU utilization (in %).",
               [](const Device& device) { return scaled(device.utilization_percent, 1); }},
    DcgmMetric{"DCGM_FI_DEV_GPU_TEMP",
               "GPU temperature (in C).",
               [](const Device& device) { return scaled(device.temperature_celsius, 1); }},
    DcgmMetric{"DCGM_FI_DEV_POWER_USAGE",
               "Power draw (in W).",
               [](const Device& device) { return scaled(device.power_milliwatts, 1000); }},
    DcgmMetric{"DCGM_FI_DEV_FB_FREE",
               "Framebuffer memory free (in MiB).",
               [](const Device& device) { return mebibytes(free_of(device)); }},
    DcgmMetric{"DCGM_FI_DEV_FB_USED",
               "Framebuffer memory used (in MiB).",
               [](const Device& device) { return mebibytes(device.memory_used); }},
    DcgmMetric{"DCGM_FI_DEV_FB_TOTAL",
               "Total framebuffer memory (in MiB).",
               [](const Device& device) { return mebibytes(device.memory_total); }},
};

void add_devices_of(const api::NodeView& node, const DcgmMetric& metric, MetricFamily& family) {
  for (const api::DeviceView& view : node.devices) {
    if (view.device.vendor != "nvidia") continue;
    for (const MetricLabels& labels : label_sets(node, view)) {
      family.add(labels, metric.value(view.device));
    }
  }
}

}  // namespace

void add_dcgm_metrics(MetricFamilies& all, const std::vector<api::NodeView>& nodes) {
  for (const DcgmMetric& metric : kMetrics) {
    MetricFamily family = MetricFamily::gauge(metric.name, metric.help);
    for (const api::NodeView& node : nodes) add_devices_of(node, metric, family);
    if (!family.empty()) all.push_back(std::move(family));
  }
}

}  // namespace gflow::server
