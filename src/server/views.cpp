// SPDX-License-Identifier: Apache-2.0
#include "server/views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "placement/cutting.h"
#include "server/shown.h"

namespace gflow::server {
namespace {

/// "0,1"; with the names of the nodes where there are several: "n1:0,1 n2:3".
std::string node_list(const Service& service, const Attempt& attempt) {
  const bool is_only = service.state().nodes().size() <= 1 && attempt.peers.empty();
  std::vector<std::string> parts;
  for (const Allocation& part : allocations_of(attempt)) {
    const std::string gpus = fmt::format("{}", fmt::join(part.gpus, ","));
    const std::string colon = gpus.empty() ? "" : ":";
    parts.push_back(is_only ? gpus : part.node + colon + gpus);
  }
  return join(parts, " ");
}

void add_attempt(api::JobView& view, const Service& service, const Job& job) {
  const Attempt* attempt = attempt_of(job);
  view.run_time = std::chrono::floor<std::chrono::seconds>(run_time_of(job, service.now().mono));
  if (attempt == nullptr) return;
  view.started = attempt->started;
  view.node = attempt->allocation.node;
  view.gpu_indices = attempt->allocation.gpus;
  view.cpu_indices = attempt->allocation.cpus;
  view.peers = attempt->peers;
  view.node_list = node_list(service, *attempt);
  view.placed_because = attempt->placed_because;
  view.gpu_memory = service.state().gpu_memory_of(job);
  const bool shares = job.spec.request.mode != GpuMode::Whole && !attempt->allocation.gpus.empty();
  if (shares && !is_pending(job) && !std::holds_alternative<Ended>(job.state)) {
    view.gpu_limits = service.gpu_limits(job);
  }
  const bool runs = !is_pending(job) && !std::holds_alternative<Ended>(job.state);
  if (runs && !job.spec.allocation) view.gpu_isolation = service.gpu_isolation(job);
  const auto* running = std::get_if<Running>(&job.state);
  if (running != nullptr && running->parked != ParkedMemory{}) view.parked = running->parked;
  view.lends = running != nullptr && running->lends;
  if (running != nullptr && running->move) {
    view.move = api::MoveView{running->move->from, running->move->to};
  }
  if (running != nullptr) view.move_refused = running->move_refused;
  view.gpu_idle = service.state().gpu_idle(job, service.now());
  view.attempt = attempt->number;
  view.pid = attempt->pid;
}

void show(api::JobView& view, const std::vector<Blocker>& blockers) {
  view.reason = reason_text(blockers);
  view.blockers.clear();
  for (const Blocker& blocker : blockers) view.blockers.push_back(api::view_of(blocker));
}

/// It has what blockers() tells.
bool is_blocked(const Job& job) { return is_pending(job) || status_of(job) == Status::Suspended; }

/// That it failed or is held, and how, is for all who know of it; the detail names what its owner
/// runs, where.
void add_reason(api::JobView& view,
                const Principal& caller,
                const Service& service,
                const Job& job) {
  const auto* ended = std::get_if<Ended>(&job.state);
  if (ended == nullptr) {
    if (!is_blocked(job)) return;
    show(view, blockers_for(caller, service, job));
    if (view.reason.empty()) view.reason = service.told(job).value_or("");
    return;
  }
  view.ended = ended->at;
  view.outcome = may_see(caller, job.spec.user) ? ended->outcome : public_part(ended->outcome);
  if (ended->status != Status::Finished) view.reason = outcome_text(*view.outcome);
}

/// Suspended jobs have no time slice.
std::vector<TimeSliceShare> time_slices_of(const engine::State& state,
                                           const std::vector<JobId>& jobs) {
  std::vector<TimeSliceUser> takers;
  for (const JobId id : jobs) {
    const Job* job = state.find(id);
    if (job == nullptr || status_of(*job) == Status::Suspended) continue;
    takers.push_back({id, job->spec.priority});
  }
  return time_slice_shares(takers);
}

api::DeviceView device_view(const engine::State& state,
                            const std::string& name,
                            const Device& device) {
  api::DeviceView view;
  view.device = device;
  view.jobs = state.holders(name, device.index);
  // The engine is told only of processes that are not of jobs that hold the device.
  view.foreign = device.processes;
  const Drain* drain = drain_of_device(state.drains(), name, device);
  if (drain == nullptr) drain = drain_of_node(state.drains(), name);
  view.bar = bar_of(device, drain, state.policy().other_use());
  view.drained = drain != nullptr;
  if (drain != nullptr) view.drained_reason = drain->reason;
  const auto index = static_cast<std::size_t>(device.index);
  const auto place = *state.ledger().find(name);
  const auto& node = state.ledger().node(place);
  const auto& left = state.ledger().state(place);
  if (index >= left.devices.size() || index >= node.devices.size()) return view;
  view.model_short = node.devices[index].model;
  view.share_free = left.devices[index].free;
  if (left.devices[index].users > 0) view.mode = left.devices[index].mode;
  if (view.mode == GpuMode::TimeSlice) view.time_slices = time_slices_of(state, view.jobs);
  if (left.devices[index].memory > Memory{}) {
    view.memory_free = std::max(Memory{}, left.devices[index].memory_free);
  }
  return view;
}

api::UnhealthyNode unhealthy_node(const engine::State& state, const NodeHealth& health, Now now) {
  api::UnhealthyNode view{health.node, health.reason, health.failures, {}};
  const auto pause = health.retry_at - state.lived(now.mono);
  if (!health.trial && pause.count() > 0) view.retry_at = now.wall + pause;
  return view;
}

/// One of which something is in the way has no room.
api::MigRoomView mig_room_view(const engine::State& state,
                               const std::string& node,
                               const MigGpu& gpu) {
  const Drain* drain = drain_of_cut_gpu(state.drains(), node, gpu.uuid);
  const bool has_room = gpu.unread.empty() && drain == nullptr;
  return {.gpu = gpu.uuid,
          .model_short = catalogue::device_model("nvidia", gpu.model, std::nullopt),
          .profiles = has_room ? placement::room_of(gpu) : std::vector<std::string>{},
          .trouble = gpu.unread,
          .refused = state.refused_slice(node, gpu.uuid),
          .drained = drain != nullptr,
          .drained_reason = drain != nullptr ? drain->reason : ""};
}

api::NodeView node_view(const engine::State& state, const engine::NodeRecord& record) {
  const Machine& machine = record.machine;
  const engine::Totals totals = state.totals(machine.name);
  api::NodeView view;
  view.name = machine.name;
  view.unreachable = record.unreachable.value_or("");
  view.removed = record.removed.value_or("");
  if (const Drain* drain = drain_of_node(state.drains(), machine.name)) {
    view.drained = true;
    view.drained_reason = drain->reason;
  }
  view.source = machine.source;
  view.note = machine.note;
  view.driver = machine.driver;
  view.labels = machine.labels;
  for (const Device& device : machine.devices) {
    view.devices.push_back(device_view(state, machine.name, device));
  }
  for (const MigGpu& gpu : machine.mig_gpus) {
    if (!state.policy().cuts(gpu.uuid)) continue;
    view.mig_room.push_back(mig_room_view(state, machine.name, gpu));
  }
  for (const Drain& drain : state.drains()) {
    const bool is_its = drain.node == machine.name;
    if (is_its && !is_present(drain, machine)) view.drained_absent.push_back(drain);
  }
  view.topology = api::view_of(machine.topology);
  view.cpus = totals.cpus;
  view.cpus_free = totals.cpus_free;
  view.memory = totals.memory;
  view.memory_free = totals.memory_free;
  return view;
}

/// Its process tells its command line, to who looks for it.
void hide_names(api::JobView& view) {
  gflow::hide_names(view.spec);
  view.pid = 0;
}

}  // namespace

std::vector<Blocker> blockers_for(const Principal& caller, const Service& service, const Job& job) {
  const engine::State& state = service.state();
  return Shown(caller, state).of(state.blockers(job.id, service.now()), job.spec.user);
}

api::JobView view_for(const Principal& caller, const Service& service, const Job& job) {
  api::JobView view;
  view.id = job.id;
  view.spec = job.spec;
  view.status = status_of(job);
  view.submitted = job.submitted;
  view.attempt = job.attempts;
  view.retries = job.retries;
  view.log_path = service.log_path(job.id);
  add_attempt(view, service, job);
  add_reason(view, caller, service, job);
  if (may_see(caller, job.spec.user)) return view;
  hide_private(view.spec);
  view.log_path.clear();
  if (view.parked) view.parked->refused.clear();  // it may name what the job does
  view.move_refused.clear();
  if (!sight_of(caller).names(job.spec.user)) hide_names(view);
  return view;
}

api::JobView view_of(const Service& service, const Job& job) {
  return view_for(system_principal(), service, job);
}

std::string why_text(const std::vector<Blocker>& blockers) {
  std::vector<std::string> sentences;
  for (const Blocker& blocker : blockers) {
    const auto* gpus = std::get_if<blocker::Gpus>(&blocker);
    sentences.push_back(gpus == nullptr
                            ? blocker_text(public_part(blocker))
                            : gpu_shortage_text(gpus->need, gpus->available, gpus->kind));
  }
  return join(sentences, "; ");
}

std::vector<api::NodeView> node_views_for(const Principal& caller, const Service& service) {
  const engine::State& state = service.state();
  const Shown shown(caller, state);
  std::vector<api::NodeView> views;
  for (const auto& [name, record] : state.nodes()) {
    views.push_back(node_view(state, record));
    for (api::DeviceView& device : views.back().devices) shown.hide(device);
  }
  return views;
}

std::vector<api::UnhealthyNode> unhealthy_views(const Principal& caller, const Service& service) {
  const engine::State& state = service.state();
  const Shown shown(caller, state);
  std::vector<api::UnhealthyNode> views;
  for (const NodeHealth& health : state.unhealthy()) {
    views.push_back(unhealthy_node(state, health, service.now()));
    shown.hide_cause(views.back().reason);
  }
  return views;
}

api::ExpectedStart view_of(const engine::ExpectedStart& start) {
  switch (start.known) {
    case engine::StartKnown::ByLimits:
      return {start.at, api::StartBy::TimeLimits};
    case engine::StartKnown::ByBegin:
      return {start.at, api::StartBy::BeginTime};
    case engine::StartKnown::NotBefore:
      return {start.at, api::StartBy::NotBefore};
    case engine::StartKnown::ByRunTimes:
      break;
  }
  return {start.at, api::StartBy::RunTimes};
}

api::MachineView machine_view_for(const Principal& caller, const Service& service) {
  const engine::State& state = service.state();
  const engine::Totals totals = state.totals();
  api::MachineView view;
  view.nodes = node_views_for(caller, service);
  view.unhealthy = unhealthy_views(caller, service);
  view.cpus = totals.cpus;
  view.cpus_free = totals.cpus_free;
  view.memory = totals.memory;
  view.memory_free = totals.memory_free;
  for (const Job* job : state.list({.statuses = kActive, .sight = sight_of(caller)})) {
    view.running.push_back(view_for(caller, service, *job));
    // What it depended on is history, and may be more than all the rest.
    view.running.back().spec.dependencies.jobs.clear();
  }
  view.queued = state.count(Status::Queued);
  view.held = state.count(Status::Hold);
  view.revision = state.revision();
  return view;
}

std::vector<api::DrainView> drain_views(const engine::State& state) {
  std::vector<api::DrainView> views;
  for (const Drain& drain : state.drains()) {
    const auto node = state.nodes().find(drain.node);
    const bool has_node = node != state.nodes().end() && !node->second.removed;
    views.push_back({drain, has_node && is_present(drain, node->second.machine)});
  }
  return views;
}

}  // namespace gflow::server
