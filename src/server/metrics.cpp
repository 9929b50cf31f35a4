// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "server/handlers.h"
#include "server/views.h"

namespace gflow::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

/// Series of one name.
class Family {
 public:
  Family(std::string name, std::string help, MetricType type) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = type;
  }

  void add(Labels labels, double value) {
    ClientMetric& metric = family_.metric.emplace_back();
    metric.label = std::move(labels);
    if (family_.type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
  }
  /// What is not known has no series.
  void add(const Labels& labels, std::optional<double> value) {
    if (value) add(labels, *value);
  }
  [[nodiscard]] const MetricFamily& family() const { return family_; }

 private:
  MetricFamily family_;
};

Family gauge(std::string name, std::string help) {
  return {std::move(name), std::move(help), MetricType::Gauge};
}

std::optional<double> bytes(const std::optional<Memory>& memory) {
  if (!memory) return std::nullopt;
  return static_cast<double>(memory->bytes);
}

template <typename T>
std::optional<double> scaled(const std::optional<T>& value, double unit) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value) / unit;
}

std::string_view state_of(const api::DeviceView& view) {
  if (view.bar != DeviceBar::None) return device_bar_name(view.bar);
  return view.jobs.empty() ? "free" : "allocated";
}

/// A family and how a device stands in it.
class GpuFamilies {
 public:
  void add(const std::string& node, const api::DeviceView& view) {
    const Device& device = view.device;
    const Labels labels = {{"node", node},
                           {"gpu", std::to_string(device.index)},
                           {"uuid", device.uuid},
                           {"vendor", device.vendor},
                           {"model", view.model_short}};
    Labels identity = labels;
    identity.push_back({"pci_bus_id", device.pci_address});
    info_.add(identity, 1.0);
    Labels state = labels;
    state.push_back({"state", std::string(state_of(view))});
    state_.add(state, 1.0);
    utilization_.add(labels, scaled(device.utilization_percent, 100));
    memory_total_.add(labels, bytes(device.memory_total));
    memory_used_.add(labels, bytes(device.memory_used));
    memory_free_.add(labels, bytes(view.memory_free));
    allocated_.add(labels, 1 - view.share_free.parts / static_cast<double>(Share::kWholeParts));
    temperature_.add(labels, scaled(device.temperature_celsius, 1));
    power_.add(labels, scaled(device.power_milliwatts, 1000));
    power_limit_.add(labels, scaled(device.power_limit_milliwatts, 1000));
    jobs_.add(labels, static_cast<double>(view.jobs.size()));
    foreign_.add(labels, static_cast<double>(view.foreign.size()));
  }

  void move_into(std::vector<MetricFamily>& all) const {
    for (const Family* family : {&info_,
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
      if (!family->family().metric.empty()) all.push_back(family->family());
    }
  }

 private:
  Family info_ = gauge("gflow_gpu_info", "A GPU that is present.");
  Family state_ = gauge("gflow_gpu_state",
                        "1 for the state a GPU is in: free, allocated, broken, "
                        "drained, in_use by other programs.");
  Family utilization_ = gauge("gflow_gpu_utilization_ratio", "Part of the time any kernel ran.");
  Family memory_total_ = gauge("gflow_gpu_memory_total_bytes", "Memory of the GPU.");
  Family memory_used_ = gauge("gflow_gpu_memory_used_bytes", "Memory of the GPU in use.");
  Family memory_free_ = gauge("gflow_gpu_memory_allocatable_bytes",
                              "Memory of the GPU that can still be promised to a job.");
  Family allocated_ = gauge("gflow_gpu_allocated_ratio", "Part of the GPU that jobs hold.");
  Family temperature_ = gauge("gflow_gpu_temperature_celsius", "Temperature of the GPU.");
  Family power_ = gauge("gflow_gpu_power_watts", "Power the GPU draws.");
  Family power_limit_ = gauge("gflow_gpu_power_limit_watts", "Power the GPU may draw.");
  Family jobs_ = gauge("gflow_gpu_jobs", "Jobs that hold the GPU.");
  Family foreign_ = gauge("gflow_gpu_foreign_processes",
                          "Processes on the GPU that are not of jobs that hold it.");
};

void add_nodes(std::vector<MetricFamily>& all, const std::vector<api::NodeView>& nodes) {
  GpuFamilies gpus;
  Family up = gauge("gflow_node_up", "Whether the node answers.");
  Family cpus = gauge("gflow_node_cpus", "CPUs of the node.");
  Family cpus_free = gauge("gflow_node_cpus_free", "CPUs of the node that no job reserves.");
  Family memory = gauge("gflow_node_memory_bytes", "Memory of the node.");
  Family memory_free =
      gauge("gflow_node_memory_free_bytes", "Memory of the node that no job reserves.");
  for (const api::NodeView& node : nodes) {
    const Labels labels = {{"node", node.name}};
    up.add(labels, node.unreachable.empty() ? 1.0 : 0.0);
    cpus.add(labels, node.cpus);
    cpus_free.add(labels, node.cpus_free);
    memory.add(labels, bytes(node.memory));
    memory_free.add(labels, bytes(node.memory_free));
    for (const api::DeviceView& device : node.devices) gpus.add(node.name, device);
  }
  for (const Family* family : {&up, &cpus, &cpus_free, &memory, &memory_free}) {
    all.push_back(family->family());
  }
  gpus.move_into(all);
}

void add_queue(std::vector<MetricFamily>& all, const Service& service) {
  const engine::State& state = service.state();
  Family jobs = gauge("gflow_jobs", "Jobs by state; ended ones as long as they are remembered.");
  for (const StatusInfo& info : kStatuses) {
    jobs.add({{"state", std::string(info.name)}}, static_cast<double>(state.count(info.status)));
  }
  all.push_back(jobs.family());
  const JobQuery waiting{.statuses = {Status::Queued}, .most = 1};
  constexpr std::size_t kSeen = 10'000;  // of those on hold before it; a scrape keeps all waiting
  Family oldest = gauge("gflow_queue_oldest_wait_seconds",
                        "How long the queued job that was submitted first has waited.");
  for (const Job* job : state.list_some(waiting, kSeen).jobs) {
    const std::chrono::duration<double> waited = service.now().wall - job->submitted;
    oldest.add({}, std::max(waited.count(), 0.0));
  }
  if (!oldest.family().metric.empty()) all.push_back(oldest.family());
}

void add_counters(std::vector<MetricFamily>& all, const Service& service) {
  const Counters& counters = service.counters();
  Family submitted(
      "gflow_jobs_submitted_total", "Jobs taken since gflowd started.", MetricType::Counter);
  submitted.add({}, static_cast<double>(counters.submitted));
  all.push_back(submitted.family());
  Family ended("gflow_jobs_ended_total",
               "Jobs that ended since gflowd started, by how.",
               MetricType::Counter);
  for (const StatusInfo& info : kStatuses) {
    if (!is_ended(info.status)) continue;
    ended.add({{"state", std::string(info.name)}},
              static_cast<double>(counters.ended.at(static_cast<std::size_t>(info.status))));
  }
  all.push_back(ended.family());
}

void add_daemon(std::vector<MetricFamily>& all, const Service& service) {
  const api::DaemonView daemon = service.daemon();
  Family build = gauge("gflow_build_info", "The version of gflowd that runs.");
  build.add({{"version", daemon.version}, {"mode", daemon.mode}}, 1.0);
  all.push_back(build.family());
  Family start = gauge("gflow_start_time_seconds", "When gflowd started, in Unix time.");
  const std::chrono::duration<double> since = daemon.started.time_since_epoch();
  start.add({}, since.count());
  all.push_back(start.family());
  Family warnings = gauge("gflow_warnings", "What 'gflowd status' warns of.");
  warnings.add({}, static_cast<double>(daemon.warnings.size()));
  all.push_back(warnings.family());
}

}  // namespace

std::string metrics_text(const Service& service) {
  std::vector<MetricFamily> all;
  add_daemon(all, service);
  add_queue(all, service);
  add_counters(all, service);
  add_nodes(all, node_views(service));
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, all);
  return out.str();
}

void show_metrics(Exchange exchange) {
  exchange.respond(
      {200, metrics_text(exchange.service), "text/plain; version=0.0.4; charset=utf-8", {}});
}

}  // namespace gflow::server
