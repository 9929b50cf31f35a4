// SPDX-License-Identifier: Apache-2.0
#include "server/metric_family.h"

#include <prometheus/text_serializer.h>

#include <limits>
#include <sstream>
#include <utility>

namespace gflow::server {

using prometheus::MetricType;

MetricFamily::MetricFamily(std::string name, std::string help, MetricType type) {
  family_.name = std::move(name);
  family_.help = std::move(help);
  family_.type = type;
}

MetricFamily MetricFamily::gauge(std::string name, std::string help) {
  return {std::move(name), std::move(help), MetricType::Gauge};
}

MetricFamily MetricFamily::counter(std::string name, std::string help) {
  return {std::move(name), std::move(help), MetricType::Counter};
}

MetricFamily MetricFamily::histogram(std::string name,
                                     std::string help,
                                     const Histogram& observed) {
  MetricFamily made = histograms(std::move(name), std::move(help));
  made.add({}, observed);
  return made;
}

MetricFamily MetricFamily::histograms(std::string name, std::string help) {
  return {std::move(name), std::move(help), MetricType::Histogram};
}

void MetricFamily::add(MetricLabels labels, const Histogram& observed) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  metric.label = std::move(labels);
  auto& histogram = metric.histogram;
  auto& exemplars = exemplars_.emplace_back();
  for (const Histogram::Bucket& bucket : observed.buckets()) {
    histogram.sample_count += bucket.count;
    histogram.bucket.push_back(
        {histogram.sample_count, bucket.upper.value_or(std::numeric_limits<double>::infinity())});
    exemplars.push_back(bucket.exemplar);
  }
  histogram.sample_sum = observed.sum();
}

void MetricFamily::add(MetricLabels labels, double value) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  metric.label = std::move(labels);
  if (family_.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

void MetricFamily::add(const MetricLabels& labels, std::optional<double> value) {
  if (value) add(labels, *value);
}

std::optional<double> in_bytes(const std::optional<Memory>& memory) {
  if (!memory) return std::nullopt;
  return static_cast<double>(memory->bytes);
}

std::string prometheus_text(const MetricFamilies& families) {
  std::vector<prometheus::MetricFamily> all;
  all.reserve(families.size());
  for (const MetricFamily& one : families) all.push_back(one.family());
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, all);
  return out.str();
}

}  // namespace gflow::server
