// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "server/handlers.h"
#include "server/metric_family.h"
#include "server/views.h"

/// GET /metrics. Names and units follow the rules of Prometheus
/// (prometheus.io/docs/practices/naming): base units, ratios from 0 to 1, and no series where a
/// value is not known. There are as many series as GPUs and routes, whatever is queued; those of
/// jobs and people are only where [metrics] asks for them. docs/metrics.md lists them.
namespace gflow::server {
namespace {

double seconds_of(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// A family of one series.
MetricFamily one(MetricFamily family, double value) {
  family.add({}, value);
  return family;
}

void add_known(MetricFamilies& all, MetricFamily family, std::optional<double> value) {
  if (value) all.push_back(one(std::move(family), *value));
}

void add_queue(MetricFamilies& all, const Service& service) {
  const engine::State& state = service.state();
  MetricFamily jobs = MetricFamily::gauge(
      "gflow_jobs", "Jobs by state; ended ones as long as they are remembered.");
  for (const StatusInfo& info : kStatuses) {
    jobs.add({{"state", std::string(info.name)}}, static_cast<double>(state.count(info.status)));
  }
  all.push_back(std::move(jobs));
  MetricFamily pending = MetricFamily::gauge(
      "gflow_jobs_pending", "Jobs that wait, by the first reason they have to wait for.");
  const engine::PendingReasons reasons = state.pending_reasons();
  for (std::size_t kind = 0; kind < kBlockerKinds.size(); ++kind) {
    pending.add({{"reason", std::string(kBlockerKinds.at(kind))}},
                static_cast<double>(reasons.by_kind.at(kind)));
  }
  pending.add({{"reason", "(others)"}}, static_cast<double>(reasons.others));
  all.push_back(std::move(pending));
  const JobQuery waiting{.statuses = {Status::Queued}, .most = 1};
  constexpr std::size_t kSeen = 10'000;  // of those on hold before it; a scrape keeps all waiting
  for (const Job* job : state.list_some(waiting, kSeen).jobs) {
    const std::chrono::duration<double> waited = state.lived(service.now().mono) - job->lived;
    all.push_back(one(MetricFamily::gauge("gflow_queue_oldest_wait_seconds",
                                          "How long the queued job that was submitted first has "
                                          "waited."),
                      std::max(waited.count(), 0.0)));
  }
}

void add_counters(MetricFamilies& all, const Counters& counters) {
  const auto total = [&all](std::string name, std::string help, double value) {
    all.push_back(one(MetricFamily::counter(std::move(name), std::move(help)), value));
  };
  total("gflow_jobs_submitted_total",
        "Jobs taken since gflowd started.",
        static_cast<double>(counters.submitted));
  MetricFamily ended = MetricFamily::counter("gflow_jobs_ended_total",
                                             "Jobs that ended since gflowd started, by how.");
  for (const StatusInfo& info : kStatuses) {
    if (!is_ended(info.status)) continue;
    ended.add({{"state", std::string(info.name)}},
              static_cast<double>(counters.ended.at(static_cast<std::size_t>(info.status))));
  }
  all.push_back(std::move(ended));
  total("gflow_attempts_started_total",
        "Attempts started since gflowd started.",
        static_cast<double>(counters.started));
  MetricFamily requeued =
      MetricFamily::counter("gflow_jobs_requeued_total", "Jobs that were queued again, by why.");
  for (std::size_t cause = 0; cause < kRequeueNames.size(); ++cause) {
    requeued.add({{"cause", kRequeueNames.at(cause)}},
                 static_cast<double>(counters.requeued.at(cause)));
  }
  all.push_back(std::move(requeued));
  total("gflow_gpu_seconds_total",
        "GPU time that jobs held which ended since gflowd started; a share counts as its part.",
        counters.gpu_seconds);
  all.push_back(MetricFamily::histogram(
      "gflow_job_wait_seconds", "From submission to the first start.", counters.wait));
  all.push_back(MetricFamily::histogram(
      "gflow_job_runtime_seconds", "How long jobs ran that ended.", counters.run_time));
  all.push_back(MetricFamily::histogram("gflow_scheduler_pass_duration_seconds",
                                        "A pass of the scheduler: what happened is decided and "
                                        "written.",
                                        counters.pass));
}

void add_daemon(MetricFamilies& all, const Service& service) {
  const api::DaemonView daemon = service.daemon(OthersJobs::All);
  MetricFamily build = MetricFamily::gauge("gflow_build_info", "The version of gflowd that runs.");
  build.add({{"version", daemon.version}, {"mode", daemon.mode}}, 1.0);
  all.push_back(std::move(build));
  all.push_back(
      one(MetricFamily::gauge("gflow_start_time_seconds", "When gflowd started, in Unix time."),
          seconds_of(daemon.started)));
  all.push_back(one(MetricFamily::gauge("gflow_warnings", "What 'gflowd status' warns of."),
                    static_cast<double>(daemon.warnings.size())));
}

void add_vitals(MetricFamilies& all, const Vitals& vitals) {
  all.push_back(one(MetricFamily::gauge("gflow_disk_full",
                                        "Whether the disk of the state directory is full: nothing "
                                        "new is taken."),
                    vitals.disk_is_full ? 1.0 : 0.0));
  add_known(
      all,
      MetricFamily::gauge("gflow_disk_free_bytes", "Room on the disk of the state directory."),
      in_bytes(vitals.disk_free));
  add_known(all,
            MetricFamily::gauge("gflow_database_bytes", "The size of the database."),
            in_bytes(vitals.database));
  add_known(all,
            MetricFamily::gauge("gflow_last_collect_timestamp_seconds",
                                "When the devices were read last, in Unix time; only of devices "
                                "that are read again and again."),
            vitals.last_reading ? std::optional(seconds_of(*vitals.last_reading)) : std::nullopt);
  add_known(all,
            MetricFamily::counter("process_cpu_seconds_total", "CPU time gflowd took."),
            vitals.cpu_seconds);
  add_known(all,
            MetricFamily::gauge("process_resident_memory_bytes", "Memory gflowd has."),
            in_bytes(vitals.resident));
  all.push_back(one(MetricFamily::counter("gflow_trace_spans_sent_total",
                                          "Spans that the OpenTelemetry collector took."),
                    static_cast<double>(vitals.spans_sent)));
  all.push_back(one(MetricFamily::counter("gflow_trace_spans_dropped_total",
                                          "Spans that were dropped, as the collector did not take "
                                          "them in time."),
                    static_cast<double>(vitals.spans_dropped)));
}

/// Nodes on which nothing is launched for a while, as launches fail there.
void add_health(MetricFamilies& all, const engine::State& state) {
  MetricFamily healthy =
      MetricFamily::gauge("gflow_node_healthy",
                          "0 where launches fail and the node is closed until it is tried again.");
  const auto closed = state.unhealthy();
  for (const auto& [name, record] : state.nodes()) {
    const bool is_closed = std::ranges::find(closed, name, &NodeHealth::node) != closed.end();
    healthy.add({{"node", name}}, is_closed ? 0.0 : 1.0);
  }
  if (!healthy.empty()) all.push_back(std::move(healthy));
}

MetricFamilies metric_families(const Principal& caller, const Service& service) {
  MetricFamilies all;
  add_daemon(all, service);
  add_vitals(all, service.vitals());
  // Sums over all jobs, before and after one of them, tell of that one.
  const bool sees_others = sight_of(caller).others != OthersJobs::None;
  if (sees_others) {
    add_queue(all, service);
    add_counters(all, service.counters());
    if (const auto* http = service.http_counters()) add_http_metrics(all, *http);
  }
  add_health(all, service.state());
  const auto nodes = node_views_for(caller, service);
  add_gpu_metrics(all, nodes);
  if (service.metrics_wanted().dcgm) add_dcgm_metrics(all, nodes);
  add_job_metrics(all, caller, service);
  return all;
}

Reply written(const MetricFamilies& families, const std::string& accept) {
  if (prefers_open_metrics(accept)) {
    return {200,
            open_metrics_text(families),
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            {{"Vary", "Accept"}}};
  }
  return {200,
          prometheus_text(families),
          "text/plain; version=0.0.4; charset=utf-8",
          {{"Vary", "Accept"}}};
}

}  // namespace

/// What is known is gathered on the loop and written down away from it.
void show_metrics(Exchange exchange) {
  struct Writing {
    Exchange exchange;
    MetricFamilies families;
    Reply reply;
  };
  auto families = metric_families(exchange.caller, exchange.service);
  if (exchange.fair_work == nullptr) {
    return exchange.respond(written(families, exchange.request.accept));
  }
  const auto writing =
      std::make_shared<Writing>(Writing{std::move(exchange), std::move(families), {}});
  writing->exchange.fair_work->aside(
      writing->exchange.caller,
      [writing] { writing->reply = written(writing->families, writing->exchange.request.accept); },
      [writing] { writing->exchange.respond(std::move(writing->reply)); });
}

}  // namespace gflow::server
