// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "server/metric_family.h"
#include "server/weights.h"

namespace gflow::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

/// A bound is written as a number with a point, so that it is the same text everywhere.
std::string bound_text(double bound) {
  if (std::isinf(bound)) return "+Inf";
  std::string text = fmt::format("{}", bound);
  return text.contains('.') || text.contains('e') ? text : text + ".0";
}

/// "{a="b",le="1.0"}"; "" without any.
std::string labels_text(const MetricLabels& labels, std::string_view le = {}) {
  std::vector<std::string> pairs;
  for (const auto& label : labels) {
    pairs.push_back(fmt::format("{}=\"{}\"", label.name, escaped(label.value)));
  }
  if (!le.empty()) pairs.push_back(fmt::format("le=\"{}\"", le));
  return pairs.empty() ? "" : fmt::format("{{{}}}", join(pairs, ","));
}

std::string exemplar_text(const std::optional<Exemplar>& exemplar) {
  if (!exemplar) return {};
  const std::string trace =
      exemplar->trace_id.empty() ? "" : fmt::format(",trace_id=\"{}\"", exemplar->trace_id);
  const std::chrono::duration<double> at = exemplar->at.time_since_epoch();
  return fmt::format(
      " # {{job_id=\"{}\"{}}} {} {:.3f}", exemplar->job, trace, exemplar->value, at.count());
}

void write_histogram(std::string& out,
                     const std::string& name,
                     const ClientMetric& metric,
                     const std::vector<std::optional<Exemplar>>& exemplars) {
  const auto& buckets = metric.histogram.bucket;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    out += fmt::format("{}_bucket{} {}{}\n",
                       name,
                       labels_text(metric.label, bound_text(buckets[i].upper_bound)),
                       buckets[i].cumulative_count,
                       exemplar_text(exemplars[i]));
  }
  const std::string labels = labels_text(metric.label);
  out += fmt::format("{}_count{} {}\n{}_sum{} {}\n",
                     name,
                     labels,
                     metric.histogram.sample_count,
                     name,
                     labels,
                     metric.histogram.sample_sum);
}

void write_family(std::string& out, const MetricFamily& one) {
  const auto& family = one.family();
  constexpr std::string_view kTotal = "_total";
  const bool is_counter = family.type == MetricType::Counter;
  const bool is_histogram = family.type == MetricType::Histogram;
  std::string name = family.name;
  if (is_counter && name.ends_with(kTotal)) name.resize(name.size() - kTotal.size());
  out += fmt::format("# TYPE {} {}\n# HELP {} {}\n",
                     name,
                     is_counter ? "counter" : (is_histogram ? "histogram" : "gauge"),
                     name,
                     escaped(family.help));
  for (std::size_t i = 0; is_histogram && i < family.metric.size(); ++i) {
    write_histogram(out, name, family.metric[i], one.exemplars()[i]);
  }
  if (is_histogram) return;
  for (const ClientMetric& metric : family.metric) {
    out += fmt::format("{}{} {}\n",
                       family.name,
                       labels_text(metric.label),
                       is_counter ? metric.counter.value : metric.gauge.value);
  }
}

}  // namespace

std::string open_metrics_text(const MetricFamilies& families) {
  std::string out;
  for (const MetricFamily& one : families) write_family(out, one);
  return out + "# EOF\n";
}

bool prefers_open_metrics(std::string_view accept) {
  const double open = weight_in(accept, "application/openmetrics-text").value_or(0);
  const double plain = weight_in(accept, "text/plain").value_or(0);
  return open > 0 && open >= plain;
}

}  // namespace gflow::server
