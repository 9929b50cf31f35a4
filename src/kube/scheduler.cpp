// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/principal.h"
#include "kube/predicates.h"

namespace gflow::kube {
namespace {

constexpr const char* kBoot = "cluster";

engine::Policy for_cluster(engine::Policy policy) {
  policy.order.order = engine::Order::Submission;  // how long pods run is not known
  policy.keep_ended = std::chrono::seconds(0);
  policy.max_ended = 0;
  policy.max_launch_failures = std::numeric_limits<int>::max();
  policy.max_unreserved_per_user = std::numeric_limits<std::size_t>::max();
  policy.max_queued_per_user = policy.max_queued;
  return policy;
}

/// Whether what it asks for is another thing now.
bool wants_else(const Pod& a, const Pod& b) {
  return a.gpu != b.gpu || a.is_sparing != b.is_sparing || a.requests != b.requests ||
         a.wishes != b.wishes || a.ports != b.ports || a.priority != b.priority ||
         a.gang != b.gang || a.near != b.near || a.unjudged != b.unjudged ||
         a.mistake != b.mistake || a.gang_mistake != b.gang_mistake || a.devices != b.devices;
}

std::string unjudged_text(const std::vector<std::string>& unjudged) {
  std::string text = "it has ";
  for (std::size_t i = 0; i < unjudged.size(); ++i) {
    text += (i == 0 ? "" : ", ") + unjudged[i];
  }
  return text + ", which gflow-kube does not judge yet: leave it to another scheduler";
}

}  // namespace

Scheduler::Scheduler(std::string name, engine::Policy policy)
    : name_(std::move(name)),
      preempts_(policy.preempt),
      policy_(for_cluster(std::move(policy))),
      state_(policy_, kBoot) {}

bool Scheduler::is_mine(const Pod& pod) const { return pod.scheduler == name_; }

void Scheduler::put(Node node) {
  node_names_[node.uid] = node.name;
  NodeEntry& entry = nodes_[node.name];
  if (entry.node == node) return;
  touch(node.name);
  const bool is_other = entry.node.name.empty() || entry.node.labels != node.labels ||
                        entry.node.taints != node.taints;
  if (is_other) neighbours_.leave(node.name);
  if (entry.node.uid != node.uid || entry.node.labels != node.labels) {
    devices_.node_changed(node.name);
  }
  entry.node = std::move(node);
  if (is_other) neighbours_.enter(entry.node);
}

void Scheduler::node_gone(const std::string& uid) {
  const auto at = node_names_.find(uid);
  if (at == node_names_.end()) return;
  const std::string name = at->second;
  node_names_.erase(at);
  const auto node = nodes_.find(name);
  if (node == nodes_.end() || node->second.node.uid != uid) return;  // another has its name by now
  neighbours_.leave(name);
  nodes_.erase(node);
  dirty_.erase(name);
  rejudged_.erase(name);
  if (has_begun_) removed_.push_back(name);
}

void Scheduler::put(const NameSpace& name_space) {
  name_spaces_[name_space.uid] = name_space.name;
  neighbours_.put(name_space);
}

void Scheduler::name_space_gone(const std::string& uid) {
  const auto at = name_spaces_.find(uid);
  if (at == name_spaces_.end()) return;
  const std::string name = at->second;
  name_spaces_.erase(at);
  const auto has_name = [&name](const auto& one) { return one.second == name; };
  if (std::ranges::none_of(name_spaces_, has_name)) neighbours_.name_space_gone(name);
}

void Scheduler::put(Pod pod) {
  const auto [at, is_new] = pods_.try_emplace(pod.uid);
  PodEntry& entry = at->second;
  if (!is_new) return update(entry, std::move(pod));
  entry.pod = std::move(pod);
  neighbours_.know(entry.pod);
  if (has_begun_) return admit(entry);
  const auto& gang = entry.pod.gang;
  if (is_mine(entry.pod) && gang && gang->name.source != GangSource::Pods) {
    sources_.insert(gang->name.source);
  }
}

/// One that was not known, or has to be taken in anew.
void Scheduler::admit(PodEntry& entry) {
  const Pod& pod = entry.pod;
  entry.role = Role::Ignored;
  entry.trouble.clear();
  entry.is_stale = false;
  entry.claims.clear();
  entry.devices.clear();
  if (!pod.node.empty()) {
    entry.role = Role::Foreign;
    place(entry, pod.node, pod.allocation);
    const auto chosen = read_chosen(pod.allocation);
    if (!chosen || chosen->node != pod.node) note_unnamed(entry);
  } else if (is_mine(pod) && !pod.is_gated && !pod.is_deleted) {
    entry.role = Role::New;
    join_gang(entry);
    new_.push_back(pod.uid);
  }
}

void Scheduler::update(PodEntry& entry, Pod pod) {
  const bool is_same = entry.pod.is_gated == pod.is_gated &&
                       entry.pod.is_deleted == pod.is_deleted && !wants_else(entry.pod, pod);
  replace(entry, std::move(pod));
  if (!has_begun_) return;
  const std::string& node = entry.pod.node;
  switch (entry.role) {
    case Role::Foreign:
      return touch(entry.node);
    case Role::Bound:
      return note_deleted(entry);
    case Role::Launched:
      entry.is_stale = entry.is_stale || !is_same;
      if (node.empty() && entry.is_stale && claiming_.contains(entry.pod.uid)) break;
      if (node.empty()) return;  // what becomes of its binding is told
      if (node == entry.node) return bound(entry.pod.uid);
      break;
    case Role::Ignored:
      break;
    case Role::New:
    case Role::Refused:
    case Role::Queued:
      if (node.empty() && is_same) return;
      break;
  }
  leave(entry);
  admit(entry);
}

/// And its neighbours are told, where it is another to them.
void Scheduler::replace(PodEntry& entry, Pod pod) {
  const bool is_other = entry.pod.labels != pod.labels || entry.pod.rules != pod.rules ||
                        entry.pod.is_deleted != pod.is_deleted;
  if (!is_other) {
    entry.pod = std::move(pod);
    return;
  }
  if (!entry.node.empty()) neighbours_.remove(entry.pod, entry.node);
  const Pod before = std::exchange(entry.pod, std::move(pod));
  neighbours_.know(entry.pod);
  neighbours_.forget(before);
  if (!entry.node.empty()) neighbours_.add(entry.pod, entry.node);
  relabelled_.insert(entry.pod.uid);
}

void Scheduler::pod_gone(const std::string& uid) {
  const auto at = pods_.find(uid);
  if (at == pods_.end()) return;
  leave(at->second);
  neighbours_.forget(at->second.pod);
  pods_.erase(at);
}

/// It is neither in the engine nor on a node any more.
void Scheduler::leave(PodEntry& entry) {
  end(entry);
  drop_class(entry);
  unplace(entry);
  leave_gang(entry);
  entry.role = Role::Ignored;
}

void Scheduler::end(PodEntry& entry) {
  if (!entry.job.is_set()) return;
  over_.push_back(entry.job);
  by_job_.erase(std::exchange(entry.job, JobId{}));
}

/// How it ends is what it is by then: what was told before may have given it room.
void Scheduler::tell_over(JobId id) {
  const Job* job = state_.find(id);
  if (job == nullptr) return;
  if (is_active(*job)) {
    step(engine::event::AttemptEnded{id, attempt_of(*job)->number, Outcome{}});
  } else {
    step(engine::event::Cancel{{id}, system_principal()});
  }
}

void Scheduler::place(PodEntry& entry, const std::string& node, const std::string& given) {
  entry.node = node;
  entry.given = given;
  on_node_[node].insert(entry.pod.uid);
  neighbours_.add(entry.pod, node);
  volumes_.use(entry.pod);
  volumes_.reserve(entry.pod, node, entry.claims);
  devices_.reserve(entry.pod, entry.devices);
  touch(node);
}

void Scheduler::unplace(PodEntry& entry) {
  claiming_.erase(entry.pod.uid);
  if (entry.node.empty()) return;
  touch(entry.node);
  neighbours_.remove(entry.pod, entry.node);
  volumes_.release(entry.pod);
  devices_.release(entry.pod, entry.devices);
  const auto at = on_node_.find(entry.node);
  at->second.erase(entry.pod.uid);
  if (at->second.empty()) on_node_.erase(at);
  entry.node.clear();
  entry.given.clear();
}

Decisions Scheduler::settle(Now now) {
  now_ = now;
  devices_.pass(now.mono);
  if (!has_begun_) return {};
  sort_again();
  for (const std::string& name : std::exchange(removed_, {})) {
    step(engine::event::NodeRemoved{name, ""});
  }
  flush_nodes();
  for (const engine::Event& event : std::exchange(events_, {})) step(event);
  pass_pauses();
  tell_classes();
  for (const JobId id : std::exchange(over_, {})) tell_over(id);
  flush_nodes();
  submit_new();
  see_moves();
  if (wake_ && *wake_ <= now.mono) {
    wake_.reset();
    step(engine::event::Tick{});
  }
  take_back();
  if (std::exchange(retries_refused_, false)) {
    for (auto& [uid, entry] : pods_) {
      if (entry.role == Role::Refused && entry.request) new_.push_back(uid);
    }
    submit_new();
    take_back();
    retries_refused_ = false;
  }
  take_back_gangs();
  drop_needless_evictions();
  end_moves();
  see_claims();
  hand_out();
  return std::exchange(decided_, {});
}

std::optional<MonoTime> Scheduler::wake() const {
  std::optional<MonoTime> first = wake_;
  const auto add = [&first](MonoTime time) { first = std::min(first.value_or(time), time); };
  if (!protected_.empty()) add(protected_.begin()->first);
  if (evicts_again_) add(*evicts_again_);
  if (!looks_.empty()) add(*looks_.begin());
  for (const auto& [uid, until] : claiming_) add(until);
  if (const auto devices = devices_.wake()) add(*devices);
  if (const auto moves = wake_for_moves()) add(*moves);
  // Left by what was decided last.
  if (!over_.empty() || !new_.empty() || !events_.empty()) add(now_.mono);
  return first;
}

/// What a node turned out not to take; what it takes is known to the engine first.
void Scheduler::take_back() {
  while (!revoked_.empty() || !over_.empty() || !dirty_.empty() || !rejudged_.empty()) {
    if (!revoked_.empty()) sort_by_volumes();
    sort_by_devices();
    flush_nodes();
    for (const Launched& one : std::exchange(revoked_, {})) {
      step(engine::event::AttemptRevoked{one.job, one.attempt});
    }
    tell_classes();
    for (const JobId id : std::exchange(over_, {})) tell_over(id);
  }
}

/// Those that are new, and those that were refused, in the order of the queue.
void Scheduler::submit_new() {
  std::vector<PodEntry*> entries;
  for (const std::string& uid : std::exchange(new_, {})) {
    const auto at = pods_.find(uid);
    if (at == pods_.end()) continue;
    PodEntry& entry = at->second;
    if (entry.role != Role::New && entry.role != Role::Refused) continue;
    entries.push_back(&entry);
    entry.seen = entry.seen.value_or(now_.mono);
    if (entry.pods_class == nullptr) join_class(entry);
  }
  flush_nodes();
  std::ranges::stable_sort(entries, [](const PodEntry* a, const PodEntry* b) {
    return std::tie(b->pod.priority, a->pod.created, a->pod.name_space, a->pod.name) <
           std::tie(a->pod.priority, b->pod.created, b->pod.name_space, b->pod.name);
  });
  std::set<std::tuple<int, gflow::Request>> refused;  // those alike need not be asked for again
  for (PodEntry* entry : entries) {
    if (entry->role != Role::New && entry->role != Role::Refused) continue;
    const bool is_retry = entry->role == Role::Refused && entry->request;
    if (is_retry && refused.contains({entry->pods_class->id, *entry->request})) continue;
    submit(*entry);
    if (entry->role == Role::Refused && entry->request && entry->trouble.empty()) {
      refused.insert({entry->pods_class->id, *entry->request});
    }
    flush_nodes();
  }
}

JobSpec Scheduler::spec_of(const PodEntry& entry) {
  const auto [at, is_new] = users_.try_emplace(entry.pod.name_space, 0);
  if (is_new) at->second = static_cast<std::uint32_t>(users_.size());
  JobSpec spec;
  spec.user = {at->second, entry.pod.name_space};
  spec.request = *entry.request;
  if (entry.pods_class != nullptr) spec.request.selector = selector_of(*entry.pods_class);
  spec.priority = priority_of(entry.pod.priority);
  if (may_be_evicted(entry)) spec.preemption = Preemption::Requeue;
  spec.grace = std::clamp<std::chrono::seconds>(
      entry.pod.grace, std::chrono::seconds(0), std::chrono::hours(24));
  spec.work_dir = "/";
  return spec;
}

void Scheduler::submit(PodEntry& entry) {
  entry.role = Role::Refused;
  entry.request.reset();
  if (!entry.pod.unjudged.empty()) {
    entry.trouble = unjudged_text(entry.pod.unjudged);
    return;
  }
  auto request = request_of(entry.pod);
  if (!request) {
    entry.trouble = request.error().message;
    return;
  }
  entry.request = *request;
  entry.trouble = beyond_limit(entry);
  if (entry.trouble.empty()) entry.trouble = gang_trouble(entry);
  if (!entry.trouble.empty()) return;
  entry.role = Role::Queued;
  entry.job = state_.next_id();
  by_job_[entry.job] = entry.pod.uid;
  answer_.reset();
  state_.spare(entry.job, entry.pod.is_sparing);
  tell_gang(entry);
  step(engine::event::Submit{{spec_of(entry)}, system_principal()});
  if (!answer_) return;
  state_.spare(entry.job, false);
  state_.leave_gang(entry.job);
  by_job_.erase(std::exchange(entry.job, JobId{}));
  entry.role = Role::Refused;
  if (answer_->code != Code::Infeasible) entry.trouble = answer_->message;
}

void Scheduler::step(const engine::Event& event) {
  namespace e = engine::effect;
  for (const engine::Effect& effect : engine::step(state_, event, now_)) {
    if (const auto* launch = std::get_if<e::Launch>(&effect)) take(*launch);
    if (const auto* answer = std::get_if<e::Answer>(&effect); answer && !answer->jobs) {
      answer_ = answer->jobs.error();
    }
    if (const auto* wake = std::get_if<e::WakeAt>(&effect)) wake_ = wake->mono;
    if (const auto* save = std::get_if<e::Save>(&effect)) see(*save);
    if (const auto* stop = std::get_if<e::StopAttempt>(&effect)) take(*stop);
  }
}

/// A job that the engine gave up though its pod is still there, or has wait again, as its node
/// went.
void Scheduler::see(const engine::effect::Save& save) {
  const auto at = by_job_.find(save.job);
  if (at == by_job_.end()) return;
  const Role role = pods_.at(at->second).role;
  const Job* job = state_.find(save.job);
  const bool holds = role == Role::Launched || role == Role::Bound;
  if (job == nullptr || is_ended(*job)) {
    lose(save.job);
  } else if (holds && !is_active(*job)) {
    lose(save.job);
    over_.push_back(save.job);
  }
}

void Scheduler::lose(JobId id) {
  const auto at = by_job_.find(id);
  PodEntry& entry = pods_.at(at->second);
  by_job_.erase(at);
  entry.job = JobId{};
  std::erase_if(decided_.binds, [&](const Bind& bind) { return bind.uid == entry.pod.uid; });
  const bool holds = entry.role == Role::Bound || entry.role == Role::Launched;
  if (holds && !claiming_.contains(entry.pod.uid)) {  // it is there, or about to be
    entry.role = Role::Foreign;
    return touch(entry.node);
  }
  leave(entry);
  admit(entry);
}

/// What the engine does not count is looked at before anybody is told.
void Scheduler::take(const engine::effect::Launch& launch) {
  const LaunchOrder& order = *launch.order;
  const auto uid = by_job_.find(order.job);
  if (uid == by_job_.end()) return;  // its pod is gone, and the engine is about to be told
  PodEntry& entry = pods_.at(uid->second);
  const auto node = nodes_.find(order.node);
  std::optional<Steps> steps;
  if (node != nodes_.end()) steps = steps_for(entry, node->second);
  if (!steps) {
    touch(order.node);
    if (reclassed_.contains(entry.pod.uid)) {  // the engine would put it there again
      leave(entry);
      return admit(entry);
    }
    revoked_.push_back({order.job, order.attempt});
    return;
  }
  drop_class(entry);
  entry.role = Role::Launched;
  entry.claims = std::move(steps->claims);
  entry.devices = std::move(steps->devices);
  if (entry.gang) launched_gangs_.insert(entry.gang->name);
  ChosenDevices chosen{order.node, {}};
  for (const DeviceGrant& grant : order.devices) {
    Chosen device = name_device(node->second.sent.devices, grant.index);
    device.share = order.mode == GpuMode::Fraction ? grant.share : Share::whole();
    device.memory = grant.memory;
    chosen.devices.push_back(std::move(device));
  }
  place(entry, order.node, chosen.devices.empty() ? "" : text_of(chosen));
  count_extras(node->second);
  decided_.binds.push_back(bind_of(entry));
}

void Scheduler::limit(engine::GpuQuota quota) {
  if (policy_.gpu_quota == quota) return;
  policy_.gpu_quota = std::move(quota);
  retries_refused_ = true;
  if (has_begun_) events_.emplace_back(engine::event::Configure{policy_});
}

void Scheduler::bound(const std::string& uid) {
  const auto at = pods_.find(uid);
  if (at == pods_.end() || at->second.role != Role::Launched) return;
  PodEntry& entry = at->second;
  entry.role = Role::Bound;
  claiming_.erase(uid);
  devices_.bound(uid, entry.devices);
  const Job* job = state_.find(entry.job);
  if (job == nullptr || !is_active(*job)) return;
  events_.emplace_back(engine::event::AttemptStarted{entry.job, attempt_of(*job)->number, 1});
  note_deleted(entry);
}

/// One that is not bound, and is not what was to be any more, or has lost its node. False: it is
/// as it was.
bool Scheduler::begin_anew(PodEntry& entry) {
  const bool has_lost_its_node = entry.role == Role::Foreign && entry.pod.node.empty();
  const bool is_anew = has_lost_its_node || (entry.role == Role::Launched && entry.is_stale);
  if (!is_anew) return false;
  leave(entry);
  admit(entry);
  return true;
}

void Scheduler::not_bound(const std::string& uid, const std::string& why) {
  const auto at = pods_.find(uid);
  if (at == pods_.end()) return;
  PodEntry& entry = at->second;
  if (begin_anew(entry) || entry.role != Role::Launched) return;
  entry.failed = why;
  unplace(entry);
  entry.role = Role::Queued;
  join_class(entry);
  const Job* job = state_.find(entry.job);
  if (job == nullptr || !is_active(*job)) return;
  Outcome outcome{.reason = EndReason::NotStarted, .message = why};
  outcome.failure.kind = FailureKind::Passing;
  events_.emplace_back(
      engine::event::AttemptEnded{entry.job, attempt_of(*job)->number, std::move(outcome)});
}

}  // namespace gflow::kube
