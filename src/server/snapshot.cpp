// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "engine/peaks.h"
#include "os/user.h"
#include "server/handlers.h"
#include "server/shown.h"
#include "settings/settings.h"

namespace gflow::server {
namespace {

// Of waiting jobs: what has more is cut, so that what is written can be read.
constexpr std::size_t kMaxSnapshotDependencies = 200'000;

/// Jobs are told apart by their program, which may be nobody's business: a number for each.
class ProgramNumbers {
 public:
  std::string operator()(const std::string& program) {
    if (program.empty()) return program;
    const auto at = numbers_.try_emplace(program, numbers_.size() + 1).first;
    return fmt::format("program{}", at->second);
  }

 private:
  std::map<std::string, std::size_t> numbers_;
};

// Each member of a job and of its states (not of an attempt, an outcome or a stop) is named below:
// a new one does not compile until somebody has decided whether a snapshot has it. If so, it is in
// api/snapshot.h and json_snapshot.cpp, too, and lab/snapshot.cpp reads it.

void show(api::SnapshotJob& shown, const Queued& queued) {
  const auto& [requeues, not_before, why, preemption_at, victims] = queued;
  shown.requeues = requeues;
  shown.not_before = not_before;
  shown.requeue_why = public_part(why);
  shown.preemption_at = preemption_at;
  shown.victims = victims;
}
void show(api::SnapshotJob& shown, const Held& held) {
  const auto& [why] = held;
  shown.held_why = public_part(why);
}
void show(api::SnapshotJob& shown, const Starting& starting) {
  [[maybe_unused]] const auto& [attempt, stop, requeues, preemption_at] = starting;
  shown.requeues = requeues;
  shown.preemption_at = preemption_at;
  if (stop) shown.stop = stop->reason;
}
void show(api::SnapshotJob& shown, const Running& running) {
  [[maybe_unused]] const auto& [attempt,
                                stop,
                                suspended,
                                stood,
                                requeues,
                                suspended_by,
                                lends,
                                move,
                                move_refused,
                                parked,
                                watches,
                                isolation,
                                left] = running;
  shown.requeues = requeues;
  shown.suspended = suspended.has_value();
  shown.suspended_by_hand = !suspended_by.empty();
  shown.suspended_for = stood;
  shown.lends = lends;
  if (stop) shown.stop = stop->reason;
}
void show(api::SnapshotJob& shown, const Ended& ended) {
  [[maybe_unused]] const auto& [status, outcome, at, attempt, lived] = ended;
  shown.ended = at;
  shown.ended_lived = lived;
  shown.reason = outcome.reason;
  shown.peak_gpu_memory = outcome.peak_gpu_memory;
}

api::SnapshotJob job_of(const Job& job, Now now) {
  [[maybe_unused]] const auto& [id,
                                spec,
                                state,
                                submitted,
                                lived,
                                payload_bytes,
                                attempts,
                                retries,
                                preemptions,
                                served,
                                served_gpu_time] = job;
  api::SnapshotJob shown;
  shown.id = id;
  shown.spec = spec;
  hide_private(shown.spec);
  if (!is_pending(job)) shown.spec.dependencies.jobs.clear();  // history
  shown.status = status_of(job);
  shown.submitted = submitted;
  shown.attempts = attempts;
  shown.preemptions = preemptions;
  shown.served = served;
  shown.served_gpu_time = served_gpu_time;
  shown.run_time = run_time_of(job, now.mono);
  shown.lived = lived;
  shown.retries = retries;
  std::visit([&shown](const auto& known) { show(shown, known); }, state);
  if (const Attempt* attempt = attempt_of(job)) {
    shown.started = attempt->started;
    if (is_active(job)) {
      shown.allocations = {attempt->allocation};
      for (const Allocation& peer : attempt->peers) shown.allocations.push_back(peer);
    }
  }
  return shown;
}

/// As the engine counts it: without what it gave to jobs, which a replay gives and takes itself,
/// but with what they use beyond their word.
std::optional<Memory> used_by_others(const placement::Node& node, const Device& device) {
  const auto index = static_cast<std::size_t>(device.index);
  if (index >= node.devices.size()) return std::nullopt;
  const Memory lost = node.devices[index].memory_lost;
  return device.memory_used || lost > Memory{} ? std::optional(lost) : std::nullopt;
}

/// The jobs as one who asks is shown them.
class ShownJobs {
 public:
  ShownJobs(const Shown& shown, Now now) : shown_(shown), now_(now) {}

  api::SnapshotJob operator()(const Job& job) {
    api::SnapshotJob one = job_of(job, now_);
    shown_.hide(one.victims);
    if (shown_.sight().names(job.spec.user)) {
      one.spec.command = programs_(engine::program_of(job.spec.command));
    } else {
      hide_names(one.spec);
    }
    return one;
  }

 private:
  const Shown& shown_;
  Now now_;
  ProgramNumbers programs_;
};

/// What decides. For who is no operator it names the users only whose jobs are in the snapshot, and
/// themselves: what is set for anybody else decides nothing in it.
std::vector<Label> policy_for(const Principal& caller,
                              const engine::Policy& policy,
                              const std::vector<api::SnapshotJob>& jobs) {
  std::set<std::string, std::less<>> users = {caller.name};
  for (const api::SnapshotJob& job : jobs) users.insert(job.spec.user.name);
  const auto is_there = [&users](std::string_view user) { return users.contains(user); };
  std::vector<Label> shown;
  for (const auto& [name, value] : settings::policy_values(policy)) {
    const bool is_hidden = !is_operator(caller) && settings::names_users(name);
    shown.push_back({name, is_hidden ? settings::only_of(value, is_there) : value});
  }
  return shown;
}

api::SnapshotHealth health_of(const Shown& shown, const NodeHealth& health) {
  api::SnapshotHealth view{health.node,
                           health.reason,
                           health.failures,
                           health.retry_at,
                           health.trial,
                           {health.tried.begin(), health.tried.end()}};
  if (view.trial && !shown.knows(*view.trial)) view.trial.reset();
  shown.hide(view.tried);
  shown.hide_cause(view.reason);
  return view;
}

api::SnapshotNode node_of(const engine::State& state, const engine::NodeRecord& record) {
  const Machine& machine = record.machine;
  const engine::Totals totals = state.totals(machine.name);
  const placement::Node& counted = state.ledger().node(*state.ledger().find(machine.name));
  api::SnapshotNode node;
  node.unreachable = record.unreachable;
  node.name = machine.name;
  node.labels = machine.labels;
  node.source = machine.source;
  node.cpus = totals.cpus;
  node.memory = totals.memory;
  for (const Device& device : machine.devices) {
    node.devices.push_back(device);
    node.devices.back().memory_used = used_by_others(counted, device);
  }
  const Topology& topology = machine.topology;
  if (topology.gpus > 0) {
    node.topology = topology_text(topology);
    node.link_speed = topology.speeds.link;
    node.path_speeds.assign(topology.speeds.path.begin(), topology.speeds.path.end());
  }
  return node;
}

}  // namespace

api::Snapshot snapshot_of(const engine::State& state, Now now, std::size_t history) {
  return snapshot_for(system_principal(), state, now, history);
}

api::Snapshot snapshot_for(const Principal& caller,
                           const engine::State& state,
                           Now now,
                           std::size_t history) {
  const Shown shown_to(caller, state);
  const JobSight sight = shown_to.sight();
  api::Snapshot snapshot;
  snapshot.taken = now.wall;
  snapshot.hostname = os::host_name();
  snapshot.next_id = state.next_id();
  snapshot.lived = state.lived(now.mono);
  for (const auto& [name, record] : state.nodes()) {
    if (record.removed) continue;
    snapshot.nodes.push_back(node_of(state, record));
    for (Device& device : snapshot.nodes.back().devices) shown_to.hide(device.processes);
  }
  snapshot.drains = state.drains();
  for (const NodeHealth& health : state.unhealthy()) {
    snapshot.unhealthy.push_back(health_of(shown_to, health));
  }

  ShownJobs job_of_caller(shown_to, now);
  for (const Job* job : state.list({.statuses = kActive, .sight = sight})) {
    snapshot.jobs.push_back(job_of_caller(*job));
  }
  std::size_t shown = 0;
  std::set<JobId> awaited;
  std::size_t edges = 0;
  for (const Job* job :
       state.list({.statuses = kPending, .most = api::kMaxSnapshotPending, .sight = sight})) {
    edges += job->spec.dependencies.jobs.size();
    if (edges > kMaxSnapshotDependencies) break;
    awaited.insert(job->spec.dependencies.jobs.begin(), job->spec.dependencies.jobs.end());
    snapshot.jobs.push_back(job_of_caller(*job));
    ++shown;
  }
  snapshot.left_out = state.count(kPending) - shown;
  const auto ended = state.list({.statuses = kEnded, .sight = sight});
  const std::size_t first = ended.size() > history ? ended.size() - history : 0;
  for (std::size_t i = 0; i < ended.size(); ++i) {
    if (i < first && !awaited.contains(ended[i]->id)) continue;
    snapshot.jobs.push_back(job_of_caller(*ended[i]));
  }
  snapshot.policy = policy_for(caller, state.policy(), snapshot.jobs);
  return snapshot;
}

void show_snapshot(Exchange exchange, SnapshotQuery query) {
  const auto history = std::min<std::size_t>(query.history, api::kMaxSnapshotEnded);
  const Service& service = exchange.service;
  const auto shown = std::make_shared<api::Snapshot>(
      snapshot_for(exchange.caller, service.state(), service.now(), history));
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
