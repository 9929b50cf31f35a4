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

Attempt attempt_of(const api::SnapshotJob& job, WallTime taken) {
  Attempt attempt;
  attempt.number = std::max(job.attempts, 1);
  attempt.started = std::min(job.started.value_or(taken), taken);
  if (!job.allocations.empty()) {
    attempt.allocation = job.allocations.front();
    attempt.peers.assign(job.allocations.begin() + 1, job.allocations.end());
  }
  return attempt;
}

/// Only how long it has run is in a snapshot: what is missing since its start it was suspended.
Running running_of(const api::SnapshotJob& job, WallTime taken) {
  Running running{attempt_of(job, taken)};
  running.stood = std::max(taken - running.attempt.started - job.run_time, milliseconds(0));
  if (job.status == Status::Suspended) running.suspended = MonoTime{};  // now, by the lab's clock
  return running;
}

JobState state_of(const api::SnapshotJob& job, WallTime taken) {
  if (job.status == Status::Hold) return Held{};
  if (job.status == Status::Starting) return Starting{attempt_of(job, taken), std::nullopt, 0};
  if (is_pending(job.status)) return Queued{};
  if (is_active(job.status)) return running_of(job, taken);
  const WallTime ended = job.ended.value_or(taken);
  Outcome outcome;
  outcome.run_time = job.run_time;
  outcome.exit_code = job.status == Status::Finished ? 0 : 1;
  return Ended{job.status, outcome, ended, std::nullopt, ended.time_since_epoch()};
}

Job job_of(const api::SnapshotJob& shown, WallTime taken) {
  Job job;
  job.id = shown.id;
  job.spec = shown.spec;
  job.state = state_of(shown, taken);
  job.submitted = std::min(shown.submitted, taken);
  job.lived = job.submitted.time_since_epoch();
  job.attempts = shown.attempts;
  job.preemptions = shown.preemptions;
  job.served = shown.served;
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
  subject.drains = snapshot.drains;
  for (const Label& setting : snapshot.policy) {
    GF_CHECK(settings::set_policy_value(subject.policy, {setting.key, setting.value}));
  }
  for (const api::SnapshotNode& node : snapshot.nodes) {
    subject.fleet.push_back(GF_TRY(node_of(node)));
  }
  const RunTimes times = learn(snapshot.jobs);
  for (const api::SnapshotJob& shown : snapshot.jobs) {
    Job job = job_of(shown, snapshot.taken);
    std::chrono::milliseconds work{0};
    if (!is_ended(shown.status)) work = times.left(job.spec, shown.run_time);
    if (is_pending(job)) {
      work = std::max(times.of(job.spec) - shown.served, std::chrono::milliseconds(1000));
    }
    subject.existing.push_back({std::move(job), work});
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
