// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/requests.h"
#include "engine/turn.h"

namespace gflow::engine {
namespace {

void apply(const event::Changes& changes, JobSpec& spec) {
  if (changes.name) spec.name = *changes.name;
  if (changes.priority) spec.priority = *changes.priority;
  if (changes.request) spec.request = *changes.request;
  if (changes.gpus) spec.request.gpus = *changes.gpus;
  if (changes.cpus) spec.request.cpus = *changes.cpus;
  if (changes.memory) spec.request.memory = *changes.memory;
  if (changes.preemption) spec.preemption = *changes.preemption;
  if (spec.preemption != Preemption::Requeue) spec.preempt_signal = 0;
  if (changes.preempt_signal) spec.preempt_signal = *changes.preempt_signal;
  if (changes.time_limit) spec.time_limit = *changes.time_limit;
  if (changes.dependencies) spec.dependencies = *changes.dependencies;
  if (changes.max_retries) spec.max_retries = *changes.max_retries;
  if (changes.max_concurrent) spec.max_concurrent = *changes.max_concurrent;
}

/// What may change while the job runs: nothing it already holds or was started with.
bool fits_running(const event::Changes& changes) {
  return !changes.request && !changes.gpus && !changes.cpus && !changes.memory &&
         !changes.dependencies;
}

}  // namespace

/// Walks what the new dependencies depend on, and refuses to come back to the job itself.
Result<void> Turn::check_cycle(JobId job, const Dependencies& dependencies) const {
  std::vector<JobId> open = dependencies.jobs;
  std::set<JobId> seen;
  while (!open.empty()) {
    const JobId id = open.back();
    open.pop_back();
    if (id == job) {
      return fail(
          Code::Usage,
          fmt::format("job {} would depend on itself: the dependencies form a circle", job.value));
    }
    const Job* next = index_.find(id);
    if (!seen.insert(id).second || next == nullptr || is_ended(*next)) continue;
    const auto& further = next->spec.dependencies.jobs;
    open.insert(open.end(), further.begin(), further.end());
  }
  return {};
}

Result<void> Turn::check_update(const Job& job, const event::Changes& changes) {
  if (is_ended(job)) {
    return fail(Code::WrongState, fmt::format("job {} has ended", job.id.value));
  }
  if (is_active(job) && !fits_running(changes)) {
    return fail(
        Code::WrongState,
        fmt::format("job {} runs: only name, priority, time limit, retries, concurrency and "
                    "how it makes room can change now",
                    job.id.value));
  }
  JobSpec spec = job.spec;
  apply(changes, spec);
  if (changes.name) GF_CHECK(check_name(spec.name));
  if (changes.dependencies) GF_CHECK(check_cycle(job.id, *changes.dependencies));
  return check_spec(spec, 0);
}

void Turn::take(const event::Update& event) {
  event::Changes changes = event.changes;
  if (changes.dependencies) {
    auto& wants = changes.dependencies->jobs;
    std::ranges::sort(wants);
    wants.erase(std::ranges::unique(wants).begin(), wants.end());
  }
  for (const JobId id : event.jobs) {
    const auto job = owned(id, event.by);
    if (!job) return answer(std::unexpected(job.error()));
    if (auto checked = check_update(**job, changes); !checked) {
      return answer(std::unexpected(checked.error()));
    }
  }
  for (const JobId id : event.jobs) {
    index_.change(id, [&changes](Job& job) { apply(changes, job.spec); });
    const Job& job = *index_.find(id);
    if (changes.max_concurrent && !job.spec.group.empty()) {
      index_.limit_group(job.spec.group, *changes.max_concurrent);
    }
    saved(id);
    if (changes.time_limit && is_active(job)) {
      effects_.emplace_back(effect::ChangeLimit{id, attempt_of(job)->number});
    }
    if (is_pending(job) && job.spec.dependencies.auto_cancel &&
        index_.dependency_state(job) == DependencyState::Never) {
      end(id,
          Status::Cancelled,
          {.reason = EndReason::DependencyFailed, .message = "a job it depends on did not finish"});
    }
  }
  answer(event.jobs);
}

}  // namespace gflow::engine
