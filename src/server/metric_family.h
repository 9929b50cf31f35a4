// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/metric_family.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/service.h"

namespace gflow::server {

using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

/// The series of one name, to be written in either format.
class MetricFamily {
 public:
  MetricFamily(std::string name, std::string help, prometheus::MetricType type);
  static MetricFamily gauge(std::string name, std::string help);
  static MetricFamily counter(std::string name, std::string help);
  static MetricFamily histogram(std::string name, std::string help, const Histogram& observed);

  /// Of several series, which are added.
  static MetricFamily histograms(std::string name, std::string help);

  void add(MetricLabels labels, double value);
  void add(MetricLabels labels, const Histogram& observed);
  /// What is not known has no series.
  void add(const MetricLabels& labels, std::optional<double> value);

  [[nodiscard]] const prometheus::MetricFamily& family() const { return family_; }
  [[nodiscard]] bool empty() const { return family_.metric.empty(); }
  /// Of a histogram, by series and bucket.
  [[nodiscard]] const std::vector<std::vector<std::optional<Exemplar>>>& exemplars() const {
    return exemplars_;
  }

 private:
  prometheus::MetricFamily family_;
  std::vector<std::vector<std::optional<Exemplar>>> exemplars_;
};
using MetricFamilies = std::vector<MetricFamily>;

[[nodiscard]] std::optional<double> in_bytes(const std::optional<Memory>& memory);
template <typename T>
[[nodiscard]] std::optional<double> scaled(const std::optional<T>& value, double unit) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value) / unit;
}

/// Prometheus's text format, 0.0.4.
[[nodiscard]] std::string prometheus_text(const MetricFamilies& families);
/// OpenMetrics 1.0: the same with exemplars. prometheus-cpp does not write it.
[[nodiscard]] std::string open_metrics_text(const MetricFamilies& families);
/// Whether who asks with this Accept header would rather have OpenMetrics.
[[nodiscard]] bool prefers_open_metrics(std::string_view accept);

// The families by what they are about. Not empty, but for those that were not asked for.
void add_gpu_metrics(MetricFamilies& all, const std::vector<api::NodeView>& nodes);
void add_dcgm_metrics(MetricFamilies& all, const std::vector<api::NodeView>& nodes);
/// Of the jobs that this caller knows of.
void add_job_metrics(MetricFamilies& all, const Principal& caller, const Service& service);
void add_http_metrics(MetricFamilies& all, const HttpCounters& counters);

}  // namespace gflow::server
