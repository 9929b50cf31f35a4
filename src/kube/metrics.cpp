// SPDX-License-Identifier: Apache-2.0
#include "kube/metrics.h"

#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>

#include "base/share.h"
#include "base/version.h"
#include "os/clock.h"
#include "os/usage.h"

namespace gflow::kube {
namespace {

/// From a pod that finds room at once to one that waits for a week.
const std::vector<double> kWaits = {
    0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 900, 3600, 14400, 43200, 86400, 259200, 604800};
const std::vector<double> kDecisions = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5};

/// Counters that are there from the start: what came from nothing would be no rate.
template <typename Names>
void begin(prometheus::Family<prometheus::Counter>& family,
           const std::string& label,
           const Names& names) {
  for (const char* name : names) family.Add({{label, name}});
}

template <typename Names, typename Kind>
std::string name_in(const Names& names, Kind kind) {
  return names.at(static_cast<std::size_t>(kind));
}

/// What the process takes, which is read only now.
prometheus::MetricFamily one(const std::string& name,
                             const std::string& help,
                             prometheus::MetricType type,
                             double value) {
  prometheus::MetricFamily family{name, help, type, {}};
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.gauge.value = value;
  metric.counter.value = value;
  return family;
}

}  // namespace

Metrics::Metrics(std::string scheduler)
    : labels_{{"scheduler", std::move(scheduler)}},
      leader_(gauges("gflow_kube_leader",
                     "1 where this one decides: it has the Lease, and has read the cluster.")
                  .Add({})),
      nodes_(gauges("gflow_kube_nodes", "Nodes of the cluster.")),
      gpus_(gauges("gflow_kube_gpus",
                   "GPUs of all nodes by state; a part of one counts as its part.")),
      waiting_(gauges("gflow_kube_pods_waiting", "Pods of this scheduler that wait, by what for.")),
      scheduling_(histogram(
          "gflow_kube_scheduling_duration_seconds",
          "From a pod that can be decided on, as this process sees it first, to its binding.",
          kWaits)),
      decision_(histogram("gflow_kube_decision_duration_seconds",
                          "A decision: all that was told since the one before.",
                          kDecisions)),
      bound_(counters("gflow_kube_pods_bound_total", "Pods that this process bound.").Add({})),
      bind_failures_(counters("gflow_kube_bind_failures_total",
                              "Tries to bind a pod that failed, by how; most are tried again.")),
      evictions_(
          counters("gflow_kube_evictions_total", "Pods evicted for those of a higher priority.")
              .Add({})),
      eviction_refusals_(
          counters("gflow_kube_eviction_refusals_total", "Evictions that were refused, by what.")),
      watch_ends_(counters("gflow_kube_watch_restarts_total",
                           "Watches that had to be begun again, by how the one before ended.")) {
  begin(bind_failures_, "reason", kBindFailureNames);
  begin(eviction_refusals_, "reason", kEvictionRefusalNames);
  for (const char* resource : kWatchedNames) {
    for (const char* reason : kWatchEndNames) {
      watch_ends_.Add({{"resource", resource}, {"reason", reason}});
    }
  }
  gauges("gflow_kube_build_info", "The version of gflow-kube that runs.")
      .Add({{"version", std::string(kVersion)}})
      .Set(1);
  const std::chrono::duration<double> now = os::now().wall.time_since_epoch();
  prometheus::BuildGauge()
      .Name("process_start_time_seconds")
      .Help("When gflow-kube started, in Unix time.")
      .Register(registry_)
      .Add({})
      .Set(now.count());
}

Metrics::Family<prometheus::Gauge>& Metrics::gauges(const std::string& name,
                                                    const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Labels(labels_).Register(registry_);
}

Metrics::Family<prometheus::Counter>& Metrics::counters(const std::string& name,
                                                        const std::string& help) {
  return prometheus::BuildCounter().Name(name).Help(help).Labels(labels_).Register(registry_);
}

prometheus::Histogram& Metrics::histogram(const std::string& name,
                                          const std::string& help,
                                          const std::vector<double>& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Labels(labels_).Register(registry_).Add(
      {}, bounds);
}

void Metrics::bound(std::chrono::duration<double> since_seen) {
  bound_.Increment();
  scheduling_.Observe(since_seen.count());
}

void Metrics::bind_failed(BindFailure how) {
  bind_failures_.Add({{"reason", name_in(kBindFailureNames, how)}}).Increment();
}

void Metrics::eviction_refused(EvictionRefusal by) {
  eviction_refusals_.Add({{"reason", name_in(kEvictionRefusalNames, by)}}).Increment();
}

void Metrics::watch_ended(Watched resource, WatchEnd how) {
  watch_ends_
      .Add({{"resource", name_in(kWatchedNames, resource)},
            {"reason", name_in(kWatchEndNames, how)}})
      .Increment();
}

void Metrics::set(const Counts& counts) {
  nodes_.Add({}).Set(static_cast<double>(counts.nodes));
  for (std::size_t i = 0; i < counts.waiting.size(); ++i) {
    waiting_.Add({{"reason", kWaitsForNames.at(i)}}).Set(static_cast<double>(counts.waiting.at(i)));
  }
  for (std::size_t i = 0; i < counts.gpus.size(); ++i) {
    gpus_.Add({{"state", kGpuStateNames.at(i)}})
        .Set(static_cast<double>(counts.gpus.at(i)) / Share::kWholeParts);
  }
}

std::string Metrics::text() const {
  std::vector<prometheus::MetricFamily> all = registry_.Collect();
  const os::Usage usage = os::own_usage();
  if (usage.cpu_seconds) {
    all.push_back(one("process_cpu_seconds_total",
                      "CPU time gflow-kube took.",
                      prometheus::MetricType::Counter,
                      *usage.cpu_seconds));
  }
  if (usage.resident) {
    all.push_back(one("process_resident_memory_bytes",
                      "Memory gflow-kube has.",
                      prometheus::MetricType::Gauge,
                      static_cast<double>(usage.resident->bytes)));
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, all);
  return out.str();
}

}  // namespace gflow::kube
