// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/backfill.h"
#include "engine/index.h"

namespace gflow::engine {
namespace {

std::optional<WallTime> end_on_calendar(const Index& index, const Job& job, Now now) {
  const auto end = index.latest_end(job);
  if (!end) return std::nullopt;
  return now.wall + (*end - job.spec.grace - now.mono);
}

/// The jobs that hold something of a kind, told by `holds(job)`.
template <typename Holds>
std::vector<blocker::Holder> holders(const Index& index, Now now, Holds holds) {
  constexpr std::size_t kMost = 64;
  std::vector<blocker::Holder> found;
  for (const Status status : {Status::Starting, Status::Running, Status::Completing}) {
    for (const JobId id : index.by_status.at(static_cast<std::size_t>(status))) {
      const Job& job = *index.find(id);
      if (!holds(job) || found.size() == kMost) continue;
      found.push_back({id,
                       job.spec.user.name,
                       attempt_of(job)->allocation.gpus,
                       end_on_calendar(index, job, now)});
    }
  }
  std::ranges::sort(found, {}, &blocker::Holder::job);
  return found;
}

std::vector<blocker::Unusable> unusable(const Index& index) {
  std::vector<blocker::Unusable> found;
  for (const Device& device : index.machine.devices) {
    if (index.holders.contains(device.index)) continue;
    if (!device.usable) {
      found.push_back({device.index, device.trouble, device.processes});
    } else if (!device.processes.empty()) {
      found.push_back({device.index, "", device.processes});
    }
  }
  return found;
}

void explain_resources(const Index& index, const Job& job, Now now, std::vector<Blocker>& why) {
  const Request& asks = job.spec.request;
  const Amounts free = index.free();
  if (asks.gpus > free.gpus) {
    const auto holds = [](const Job& other) { return other.spec.request.gpus > 0; };
    why.emplace_back(
        blocker::Gpus{asks.gpus, free.gpus, holders(index, now, holds), unusable(index)});
  }
  if (asks.memory > free.memory) {
    const auto holds = [](const Job& other) { return other.spec.request.memory.bytes > 0; };
    why.emplace_back(blocker::HostMemory{asks.memory, free.memory, holders(index, now, holds)});
  }
  if (asks.cpus > free.cpus) {
    const auto holds = [](const Job& other) { return other.spec.request.cpus > 0; };
    why.emplace_back(blocker::Cpus{asks.cpus, free.cpus, holders(index, now, holds)});
  }
}

std::optional<Blocker> explain_dependencies(const Index& index, const Job& job) {
  const Dependencies& wants = job.spec.dependencies;
  const DependencyState state = index.dependency_state(job);
  if (state == DependencyState::Met) return std::nullopt;
  blocker::Dependency waits{{}, wants.mode, state == DependencyState::Never};
  for (const JobId id : wants.jobs) {
    const Job* other = index.find(id);
    const bool finished = other != nullptr && status_of(*other) == Status::Finished;
    const bool over = other == nullptr || is_ended(*other);
    if (waits.never ? over && !finished : !over) waits.waiting_for.push_back(id);
  }
  return waits;
}

}  // namespace

std::vector<Blocker> State::blockers(JobId id, Now now) const {
  const Index& index = *index_;
  std::vector<Blocker> why;
  const Job* job = index.find(id);
  if (job == nullptr || !is_pending(*job)) return why;
  if (const auto* held = std::get_if<Held>(&job->state))
    why.emplace_back(blocker::OnHold{held->why});
  if (auto waits = explain_dependencies(index, *job)) {
    why.push_back(std::move(*waits));
  }
  if (job->spec.begin && *job->spec.begin > now.wall) {
    why.emplace_back(blocker::BeginTime{*job->spec.begin});
  }
  if (const auto* queued = std::get_if<Queued>(&job->state);
      queued != nullptr && queued->not_before && *queued->not_before > now.mono) {
    why.emplace_back(
        blocker::LaunchBackoff{queued->launch_failures, *queued->not_before - now.mono});
  }
  if (const auto group = index.groups.find(job->spec.group);
      group != index.groups.end() && group->second.parked.contains(key_of(*job))) {
    why.emplace_back(blocker::GroupLimit{job->spec.group, group->second.limit});
  }
  const bool stands_in_queue = why.empty();
  explain_resources(index, *job, now, why);
  if (stands_in_queue && index.head && index.head->job != id) {
    const Job& ahead = *index.find(index.head->job);
    if (key_of(ahead) < key_of(*job)) {
      std::optional<WallTime> from;
      if (index.head->start) from = now.wall + (*index.head->start - now.mono);
      why.emplace_back(blocker::Priority{ahead.id, from});
    }
  }
  return why;
}

}  // namespace gflow::engine
