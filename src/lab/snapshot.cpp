// SPDX-License-Identifier: Apache-2.0
#include "lab/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/snapshot.h"
#include "base/text.h"
#include "lab/run_times.h"
#include "settings/settings.h"

namespace gflow::lab {
namespace {

using std::chrono::milliseconds;

RunTimes learn(const std::vector<api::SnapshotJob>& jobs) {
  RunTimes times;
  for (const api::SnapshotJob& job : jobs) {
    if (job.status == Status::Finished || job.status == Status::Failed) {
      times.learn(job.spec, job.run_time);
    }
  }
  return times;
}

/// It began as long ago as it ran or was suspended since, whatever the clock was set to meanwhile.
Attempt attempt_of(const api::SnapshotJob& job, WallTime taken) {
  Attempt attempt;
  attempt.number = std::max(job.attempts, 1);
  attempt.started = std::min(job.started.value_or(taken), taken);
  if (job.lived && is_active(job.status)) {
    attempt.started = taken - job.run_time - job.suspended_for;
  }
  if (!job.allocations.empty()) {
    attempt.allocation = job.allocations.front();
    attempt.peers.assign(job.allocations.begin() + 1, job.allocations.end());
  }
  return attempt;
}

std::optional<Stop> stop_of(const api::SnapshotJob& job) {
  return job.stop ? std::optional(Stop{.reason = *job.stop}) : std::nullopt;
}

/// In a snapshot of old is only how long it has run: what is missing since its start it was
/// suspended.
Running running_of(const api::SnapshotJob& job, WallTime taken) {
  Running running{
      .attempt = attempt_of(job, taken), .stop = stop_of(job), .requeues = job.requeues};
  running.stood = std::max(taken - running.attempt.started - job.run_time, milliseconds(0));
  if (job.suspended || job.status == Status::Suspended) {
    running.suspended = MonoTime{};  // now, by the lab's clock
    if (job.suspended_by_hand) running.suspended_by = job.spec.user.name;
  }
  // What is done there cannot be told, but that its GPU may have been given to another.
  running.lends = job.lends;
  if (job.lends) running.parked.how = Parking::Parked;
  return running;
}

Ended ended_of(const api::SnapshotJob& job, WallTime taken) {
  Ended ended{.status = job.status, .outcome = {}, .at = job.ended.value_or(taken)};
  ended.lived = job.ended_lived.value_or(ended.at.time_since_epoch());
  ended.outcome.run_time = job.run_time;
  ended.outcome.exit_code = job.status == Status::Finished ? 0 : 1;
  ended.outcome.reason = job.reason.value_or(EndReason::Exited);
  ended.outcome.peak_gpu_memory = job.peak_gpu_memory;
  if (job.started) ended.attempt = attempt_of(job, taken);
  return ended;
}

JobState state_of(const api::SnapshotJob& job, WallTime taken) {
  if (job.status == Status::Hold) return Held{job.held_why};
  if (is_pending(job.status)) {
    return Queued{.requeues = job.requeues,
                  .not_before = job.not_before,
                  .why = job.requeue_why,
                  .preemption_at = job.preemption_at,
                  .victims = job.victims};
  }
  if (job.status == Status::Starting) {
    return Starting{attempt_of(job, taken), std::nullopt, job.requeues, job.preemption_at};
  }
  if (is_active(job.status)) return running_of(job, taken);
  return ended_of(job, taken);
}

Job job_of(const api::SnapshotJob& shown, WallTime taken) {
  Job job;
  job.id = shown.id;
  job.spec = shown.spec;
  job.state = state_of(shown, taken);
  job.submitted = shown.lived ? shown.submitted : std::min(shown.submitted, taken);
  job.lived = shown.lived.value_or(job.submitted.time_since_epoch());
  job.attempts = shown.attempts;
  job.retries = shown.retries;
  job.preemptions = shown.preemptions;
  job.served = shown.served;
  job.served_gpu_time =
      shown.served_gpu_time.value_or(gpu_time_of(shown.spec.request, shown.served));
  if (is_active(job)) job.attempts = std::max(job.attempts, 1);
  return job;
}

Result<Machine> node_of(const api::SnapshotNode& shown) {
  Machine node;
  node.name = shown.name;
  node.labels = shown.labels;
  node.source = shown.source;
  node.cpus = shown.cpus;
  node.memory = shown.memory;
  node.devices = shown.devices;
  if (shown.topology.empty()) return node;
  LinkSpeeds speeds;
  speeds.link = shown.link_speed;
  std::copy_n(shown.path_speeds.begin(),
              std::min(shown.path_speeds.size(), speeds.path.size()),
              speeds.path.begin());
  node.topology = GF_TRY(parse_topology(shown.topology, speeds));
  return node;
}

/// What would make the engine's books wrong: a snapshot is a file, and files are edited.
Result<void> check(const api::Snapshot& snapshot) {
  std::set<JobId> ids;
  for (const api::SnapshotJob& job : snapshot.jobs) {
    if (!ids.insert(job.id).second) {
      return fail(Code::Usage, fmt::format("job {} stands there twice", job.id.value));
    }
    if (job.id >= snapshot.next_id) {
      return fail(
          Code::Usage,
          fmt::format("job {} is not before next_id {}", job.id.value, snapshot.next_id.value));
    }
  }
  std::set<std::string> names;
  for (const api::SnapshotNode& node : snapshot.nodes) {
    if (!names.insert(node.name).second) {
      return fail(Code::Usage, fmt::format("node '{}' stands there twice", printable(node.name)));
    }
  }
  return {};
}

Result<Subject> subject_of(const api::Snapshot& snapshot) {
  GF_CHECK(check(snapshot));
  Subject subject;
  subject.begins = snapshot.taken;
  subject.next_id = snapshot.next_id;
  subject.lived = snapshot.lived;
  for (const api::SnapshotHealth& health : snapshot.unhealthy) {
    subject.unhealthy.push_back({health.node,
                                 health.reason,
                                 health.failures,
                                 health.retry_at,
                                 health.trial,
                                 {health.tried.begin(), health.tried.end()}});
  }
  subject.drains = snapshot.drains;
  for (const Label& setting : snapshot.policy) {
    GF_CHECK(settings::set_policy_value(subject.policy, {setting.key, setting.value}));
  }
  for (const api::SnapshotNode& node : snapshot.nodes) {
    subject.fleet.push_back(GF_TRY(node_of(node)));
    if (node.unreachable) subject.unreachable.emplace(node.name, *node.unreachable);
  }
  const RunTimes times = learn(snapshot.jobs);
  for (const api::SnapshotJob& shown : snapshot.jobs) {
    Job job = job_of(shown, snapshot.taken);
    std::optional<RunEstimate> run;
    if (!is_ended(shown.status)) {
      run = times.left(job.spec, is_pending(job) ? shown.served : shown.run_time);
    }
    subject.existing.push_back({std::move(job), run});
  }
  return subject;
}

}  // namespace

Result<Subject> read_snapshot(std::string_view json, const std::string& file) {
  const auto snapshot = api::read_snapshot(json);
  if (!snapshot) return with_context(snapshot.error(), printable(file));
  auto subject = subject_of(*snapshot);
  if (!subject) return with_context(subject.error(), printable(file));
  subject->name = fmt::format("{} of {}", file, rfc3339(snapshot->taken));
  return subject;
}

}  // namespace gflow::lab
