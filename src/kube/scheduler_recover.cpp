// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kube/scheduler.h"

/// What a scheduler that begins makes of a cluster that is there.
namespace gflow::kube {
namespace {

/// Each is asked for at every node.
constexpr std::size_t kMostClassesShown = 64;

}  // namespace

std::vector<Scheduler::PodEntry*> Scheduler::by_age() {
  std::vector<PodEntry*> entries;
  for (auto& [uid, entry] : pods_) entries.push_back(&entry);
  std::ranges::sort(entries, [](const PodEntry* a, const PodEntry* b) {
    return std::tie(a->pod.created, a->pod.name_space, a->pod.name, a->pod.uid) <
           std::tie(b->pod.created, b->pod.name_space, b->pod.name, b->pod.uid);
  });
  return entries;
}

void Scheduler::begin(Now now) {
  now_ = now;
  has_begun_ = true;
  state_.set_lived(now.wall.time_since_epoch(), now.mono);
  std::uint64_t last = 0;
  for (PodEntry* entry : by_age()) {
    const JobId job(++last);
    if (!entry->pod.node.empty()) {
      adopt(*entry, job);
    } else {
      admit(*entry);
      queue(*entry, job);
    }
  }
  adopted_.clear();
  state_.restored(JobId(last + 1));
  touch_all();
  resume_moves(now);
  if (!policy_.gpu_quota.none()) step(engine::event::Configure{policy_});
}

/// A pod that waits gets the place its age gives it; what is wrong with one submit() says.
void Scheduler::queue(PodEntry& entry, JobId job) {
  const bool is_clear = entry.pod.unjudged.empty() && gang_trouble(entry).empty();
  if (entry.role != Role::New || !is_clear) return;
  const auto request = request_of(entry.pod);
  if (!request) return;
  entry.request = *request;
  entry.seen = now_.mono;
  entry.job = job;
  join_class(entry);
  entry.role = Role::Queued;
  restore(entry, gflow::Queued{});
}

/// A pod on a node: ours where it says which devices it has, and nobody else says so.
void Scheduler::adopt(PodEntry& entry, JobId job) {
  entry.role = Role::Foreign;
  place(entry, entry.pod.node, entry.pod.allocation);
  const auto devices = is_mine(entry.pod) ? devices_held(entry) : std::nullopt;
  if (!devices) return note_unnamed(entry);
  entry.role = Role::Bound;
  entry.job = job;
  join_gang(entry);
  Running running;
  running.attempt.number = 1;
  running.attempt.allocation = {entry.pod.node, *devices, {}};
  running.attempt.started = now_.wall;
  running.attempt.started_mono = now_.mono;
  running.attempt.boot_id = state_.boot_id();
  running.attempt.pid = 1;
  if (entry.pod.is_deleted) running.stop = Stop{EndReason::Preempted, {}, 0};
  class_if_shown(entry);
  restore(entry, std::move(running));
}

/// As one that waits; but for those whom others keep apart, of which a place taken says nothing of
/// the next.
void Scheduler::class_if_shown(PodEntry& entry) {
  if (!classed_running_.contains(entry.pod.uid)) return;
  const ClassKey key = key_of(entry.pod);
  if (!std::get<Bonds>(key).empty()) return;
  if (classes_.size() < kMostClassesShown || classes_.contains(key)) join_class(entry);
}

std::optional<std::vector<int>> Scheduler::devices_held(const PodEntry& entry) {
  auto request = request_of(entry.pod);
  const auto node = nodes_.find(entry.pod.node);
  if (!request || node == nodes_.end()) return std::nullopt;
  std::vector<int> devices;
  if (request->gpus > 0) {
    auto named = devices_named(
        entry.pod.allocation, entry.pod.node, devices_of(node->second.node), *request);
    if (!named) return std::nullopt;
    devices = *std::move(named);
  }
  const std::int32_t parts =
      request->mode == GpuMode::Fraction ? request->share.parts : Share::kWholeParts;
  const auto used = [&](int index) -> std::int32_t& { return adopted_[{entry.pod.node, index}]; };
  for (const int index : devices) {
    if (used(index) + parts > Share::kWholeParts) return std::nullopt;
  }
  for (const int index : devices) used(index) += parts;
  pods_.at(entry.pod.uid).request = *std::move(request);
  return devices;
}

void Scheduler::note_unnamed(const PodEntry& entry) {
  const Pod& pod = entry.pod;
  if (!is_mine(pod) || !nodes_.contains(pod.node)) return;
  const auto request = request_of(pod);
  if (!request || request->gpus == 0) return;
  decided_.unnamed.push_back({pod.uid, pod.name_space, pod.name, pod.node, request->gpus});
}

void Scheduler::restore(PodEntry& entry, JobState state) {
  Job job;
  job.id = entry.job;
  job.spec = spec_of(entry);
  job.spec.name = "pod";
  job.attempts = std::holds_alternative<Running>(state) ? 1 : 0;
  job.state = std::move(state);
  job.submitted = entry.pod.created;
  job.lived = entry.pod.created.time_since_epoch();
  by_job_[job.id] = entry.pod.uid;
  state_.spare(job.id, entry.pod.is_sparing);
  tell_gang(entry);
  state_.restore(std::move(job));
}

}  // namespace gflow::kube
