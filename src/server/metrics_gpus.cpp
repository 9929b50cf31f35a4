// SPDX-License-Identifier: Apache-2.0
#include "server/metric_family.h"

namespace gflow::server {
namespace {

std::string_view state_of(const api::DeviceView& view) {
  if (view.bar != DeviceBar::None) return device_bar_name(view.bar);
  return view.has_jobs() ? "allocated" : "free";
}

/// A family and how a device stands in it.
class GpuFamilies {
 public:
  void add(const std::string& node, const api::DeviceView& view) {
    const Device& device = view.device;
    const MetricLabels labels = {{"node", node},
                                 {"gpu", std::to_string(device.index)},
                                 {"uuid", device.uuid},
                                 {"vendor", device.vendor},
                                 {"model", view.model_short}};
    MetricLabels identity = labels;
    identity.push_back({"pci_bus_id", device.pci_address});
    if (device.mig) {
      identity.push_back({"parent", device.mig->parent});
      identity.push_back({"profile", device.mig->profile});
    }
    info_.add(identity, 1.0);
    MetricLabels state = labels;
    state.push_back({"state", std::string(state_of(view))});
    state_.add(state, 1.0);
    utilization_.add(labels, scaled(device.utilization_percent, 100));
    memory_total_.add(labels, in_bytes(device.memory_total));
    memory_used_.add(labels, in_bytes(device.memory_used));
    memory_free_.add(labels, in_bytes(view.memory_free));
    allocated_.add(labels, 1 - view.share_free.parts / static_cast<double>(Share::kWholeParts));
    temperature_.add(labels, scaled(device.temperature_celsius, 1));
    power_.add(labels, scaled(device.power_milliwatts, 1000));
    power_limit_.add(labels, scaled(device.power_limit_milliwatts, 1000));
    jobs_.add(labels, static_cast<double>(view.jobs.size() + view.other_jobs));
    foreign_.add(labels, static_cast<double>(view.foreign.size()));
  }

  void move_into(MetricFamilies& all) const {
    for (const MetricFamily* family : {&info_,
                                       &state_,
                                       &utilization_,
                                       &memory_total_,
                                       &memory_used_,
                                       &memory_free_,
                                       &allocated_,
                                       &temperature_,
                                       &power_,
                                       &power_limit_,
                                       &jobs_,
                                       &foreign_}) {
      if (!family->empty()) all.push_back(*family);
    }
  }

 private:
  MetricFamily info_ = MetricFamily::gauge("gflow_gpu_info", "A GPU that is present.");
  MetricFamily state_ = MetricFamily::gauge("gflow_gpu_state",
                                            "1 for the state a GPU is in: free, allocated, broken, "
                                            "drained, in_use by other programs.");
  MetricFamily utilization_ =
      MetricFamily::gauge("gflow_gpu_utilization_ratio", "Part of the time any kernel ran.");
  MetricFamily memory_total_ =
      MetricFamily::gauge("gflow_gpu_memory_total_bytes", "Memory of the GPU.");
  MetricFamily memory_used_ =
      MetricFamily::gauge("gflow_gpu_memory_used_bytes", "Memory of the GPU in use.");
  MetricFamily memory_free_ =
      MetricFamily::gauge("gflow_gpu_memory_allocatable_bytes",
                          "Memory of the GPU that can still be promised to a job.");
  MetricFamily allocated_ =
      MetricFamily::gauge("gflow_gpu_allocated_ratio", "Part of the GPU that jobs hold.");
  MetricFamily temperature_ =
      MetricFamily::gauge("gflow_gpu_temperature_celsius", "Temperature of the GPU.");
  MetricFamily power_ = MetricFamily::gauge("gflow_gpu_power_watts", "Power the GPU draws.");
  MetricFamily power_limit_ =
      MetricFamily::gauge("gflow_gpu_power_limit_watts", "Power the GPU may draw.");
  MetricFamily jobs_ = MetricFamily::gauge("gflow_gpu_jobs", "Jobs that hold the GPU.");
  MetricFamily foreign_ = MetricFamily::gauge(
      "gflow_gpu_foreign_processes", "Processes on the GPU that are not of jobs that hold it.");
};

}  // namespace

void add_gpu_metrics(MetricFamilies& all, const std::vector<api::NodeView>& nodes) {
  GpuFamilies gpus;
  MetricFamily up = MetricFamily::gauge("gflow_node_up", "Whether the node answers.");
  MetricFamily cpus = MetricFamily::gauge("gflow_node_cpus", "CPUs of the node.");
  MetricFamily cpus_free =
      MetricFamily::gauge("gflow_node_cpus_free", "CPUs of the node that no job reserves.");
  MetricFamily memory = MetricFamily::gauge("gflow_node_memory_bytes", "Memory of the node.");
  MetricFamily memory_free = MetricFamily::gauge("gflow_node_memory_free_bytes",
                                                 "Memory of the node that no job reserves.");
  MetricFamily info = MetricFamily::gauge("gflow_node_info", "A node and where its GPUs are read.");
  MetricFamily drained = MetricFamily::gauge("gflow_node_drained",
                                             "Whether an administrator drained all of the node.");
  for (const api::NodeView& node : nodes) {
    const MetricLabels labels = {{"node", node.name}};
    info.add({{"node", node.name}, {"source", node.source}, {"driver", node.driver}}, 1.0);
    drained.add(labels, node.drained ? 1.0 : 0.0);
    up.add(labels, node.unreachable.empty() ? 1.0 : 0.0);
    cpus.add(labels, node.cpus);
    cpus_free.add(labels, node.cpus_free);
    memory.add(labels, in_bytes(node.memory));
    memory_free.add(labels, in_bytes(node.memory_free));
    for (const api::DeviceView& device : node.devices) gpus.add(node.name, device);
  }
  for (const MetricFamily* family :
       {&info, &up, &drained, &cpus, &cpus_free, &memory, &memory_free}) {
    all.push_back(*family);
  }
  gpus.move_into(all);
}

}  // namespace gflow::server
