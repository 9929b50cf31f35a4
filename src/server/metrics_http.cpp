// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "server/http_counters.h"
#include "server/metric_family.h"
#include "server/routes.h"

/// What is asked over HTTP, by route: as many series as there are routes that were asked.
namespace gflow::server {
namespace {

constexpr std::string_view kNoRoute = "(others)";

MetricLabels labels_of(std::size_t route) {
  const bool is_one = route < routes().size();
  return {{"route", std::string(is_one ? routes()[route].pattern : kNoRoute)},
          {"method", std::string(is_one ? routes()[route].method : kNoRoute)}};
}

Histogram times_of(const HttpCounters::Route& route) {
  Histogram times(HttpCounters::kBounds);
  for (std::size_t i = 0; i < route.by_time.size(); ++i) times.count(i, route.by_time.at(i));
  constexpr double kNanoseconds = 1e9;
  times.add_sum(static_cast<double>(route.nanoseconds) / kNanoseconds);
  return times;
}

void add_requests(MetricFamilies& all, const HttpCounters& counters) {
  MetricFamily requests =
      MetricFamily::counter("gflow_http_requests_total", "Answers since gflowd started, by route.");
  MetricFamily times =
      MetricFamily::histograms("gflow_http_request_duration_seconds",
                               "From a request that was read to the beginning of its answer.");
  for (std::size_t i = 0; i < counters.routes().size(); ++i) {
    const HttpCounters::Route& route = counters.routes()[i];
    bool was_asked = false;
    for (std::size_t status = 0; status < route.by_status.size(); ++status) {
      const std::uint64_t count = route.by_status.at(status);
      if (count == 0) continue;
      was_asked = true;
      MetricLabels labels = labels_of(i);
      labels.push_back({"code", std::to_string(HttpCounters::kStatuses.at(status))});
      requests.add(std::move(labels), static_cast<double>(count));
    }
    if (was_asked) times.add(labels_of(i), times_of(route));
  }
  if (!requests.empty()) all.push_back(std::move(requests));
  if (!times.empty()) all.push_back(std::move(times));
}

}  // namespace

void add_http_metrics(MetricFamilies& all, const HttpCounters& counters) {
  add_requests(all, counters);
  MetricFamily connections =
      MetricFamily::gauge("gflow_http_connections", "Open connections, by the way they came.");
  for (std::size_t via = 0; via < kVias.size(); ++via) {
    connections.add({{"via", std::string(kVias.at(via))}},
                    static_cast<double>(counters.connections(via)));
  }
  all.push_back(std::move(connections));
  MetricFamily streams = MetricFamily::gauge(
      "gflow_http_streams", "Answers that are sent in pieces now: followed logs, events.");
  streams.add({}, static_cast<double>(counters.streams()));
  all.push_back(std::move(streams));
  MetricFamily refused = MetricFamily::counter(
      "gflow_http_refused_total", "Connections and requests refused before any route, by why.");
  for (std::size_t why = 0; why < kRefusals.size(); ++why) {
    refused.add({{"reason", std::string(kRefusals.at(why))}},
                static_cast<double>(counters.refused_by(why)));
  }
  all.push_back(std::move(refused));
}

}  // namespace gflow::server
