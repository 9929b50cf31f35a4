// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "api/query.h"
#include "api/snapshot.h"
#include "os/user.h"
#include "server/handlers.h"
#include "settings/settings.h"

namespace gflow::server {
namespace {

constexpr std::size_t kUsualHistory = 2000;
// Of waiting jobs: what has more is cut, so that what is written can be read.
constexpr std::size_t kMaxSnapshotDependencies = 200'000;

api::SnapshotJob job_of(const Job& job, Now now) {
  api::SnapshotJob shown;
  shown.id = job.id;
  shown.spec = job.spec;
  hide_private(shown.spec);
  if (!is_pending(job)) shown.spec.dependencies.jobs.clear();  // history
  shown.status = status_of(job);
  shown.submitted = job.submitted;
  shown.attempts = job.attempts;
  shown.preemptions = job.preemptions;
  shown.served = job.served;
  shown.run_time = run_time_of(job, now.mono);
  if (const auto* ended = std::get_if<Ended>(&job.state)) shown.ended = ended->at;
  if (const Attempt* attempt = attempt_of(job)) {
    shown.started = attempt->started;
    if (is_active(job)) {
      shown.allocations = {attempt->allocation};
      for (const Allocation& peer : attempt->peers) shown.allocations.push_back(peer);
    }
  }
  return shown;
}

/// Without what jobs of gflow use, which a replay gives and takes itself.
std::optional<Memory> used_by_others(const Device& device) {
  if (!device.memory_used) return std::nullopt;
  Memory used = *device.memory_used;
  for (const JobUse& use : device.uses) {
    if (!use.memory) return std::nullopt;
    used -= *use.memory;
  }
  return std::max(used, Memory{});
}

api::SnapshotNode node_of(const Machine& machine, const engine::Totals& totals) {
  api::SnapshotNode node;
  node.name = machine.name;
  node.labels = machine.labels;
  node.source = machine.source;
  node.cpus = totals.cpus;
  node.memory = totals.memory;
  for (const Device& device : machine.devices) {
    node.devices.push_back(device);
    node.devices.back().memory_used = used_by_others(device);
  }
  const Topology& topology = machine.topology;
  if (topology.gpus > 0) {
    node.topology = topology_text(topology);
    node.link_speed = topology.speeds.link;
    node.path_speeds.assign(topology.speeds.path.begin(), topology.speeds.path.end());
  }
  return node;
}

api::Snapshot snapshot_of(const engine::State& state, Now now, std::size_t history) {
  api::Snapshot snapshot;
  snapshot.taken = now.wall;
  snapshot.hostname = os::host_name();
  snapshot.next_id = state.next_id();
  for (const auto& [name, value] : settings::policy_values(state.policy())) {
    snapshot.policy.push_back({name, value});
  }
  for (const auto& [name, record] : state.nodes()) {
    snapshot.nodes.push_back(node_of(record.machine, state.totals(name)));
  }
  snapshot.drains = state.drains();

  for (const Job* job : state.list({.statuses = kActive})) {
    snapshot.jobs.push_back(job_of(*job, now));
  }
  std::size_t shown = 0;
  std::size_t edges = 0;
  for (const Job* job : state.list({.statuses = kPending, .most = api::kMaxSnapshotPending})) {
    edges += job->spec.dependencies.jobs.size();
    if (edges > kMaxSnapshotDependencies) break;
    snapshot.jobs.push_back(job_of(*job, now));
    ++shown;
  }
  snapshot.left_out = state.count(kPending) - shown;
  const auto ended = state.list({.statuses = kEnded});
  const std::size_t first = ended.size() > history ? ended.size() - history : 0;
  for (std::size_t i = first; i < ended.size(); ++i) {
    snapshot.jobs.push_back(job_of(*ended[i], now));
  }
  return snapshot;
}

}  // namespace

void show_snapshot(Exchange exchange) {
  std::size_t history = kUsualHistory;
  const auto parameters = api::read_parameters(exchange.request.query);
  if (!parameters) return exchange.respond(problem(parameters.error()));
  for (const api::Parameter& parameter : *parameters) {
    if (parameter.name != "history") {
      return exchange.respond(problem(api::unknown_parameter(parameter.name, {"history"}).error()));
    }
    const auto number = api::number_of(parameter);
    if (!number) return exchange.respond(problem(number.error()));
    history = std::min<std::size_t>(*number, api::kMaxSnapshotEnded);
  }
  const Service& service = exchange.service;
  const auto shown =
      std::make_shared<api::Snapshot>(snapshot_of(service.state(), service.now(), history));
  if (exchange.fair_work == nullptr) return exchange.respond(json_reply(api::write(*shown)));
  const auto text = std::make_shared<std::string>();
  FairWork& fair_work = *exchange.fair_work;
  fair_work.aside(
      exchange.caller,
      [shown, text] {
        *text = api::write(*shown);
        *shown = {};
      },
      [text, respond = std::move(exchange.respond)] { respond(json_reply(std::move(*text))); });
}

}  // namespace gflow::server
