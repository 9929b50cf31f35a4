// SPDX-License-Identifier: Apache-2.0
#include "kube/batch_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "kube/containers.h"
#include "kube/fields.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostOfCommand = 4096;
constexpr const char* kDeadline = "DeadlineExceeded";

WallTime time_in(const Json& of, const char* key, WallTime otherwise) {
  const auto read = parse_rfc3339(text(of, key));
  return read ? *read : otherwise;
}

/// For people: whoever makes a Job writes there what he likes, and others see it.
std::string shown(const Json& metadata, std::string_view name) {
  constexpr std::size_t kMost = 256;
  return cut_end(noted(metadata, name), kMost);
}

/// As the API server would have made it.
Pod stand_in_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  Json pod = part(part(object, "spec"), "template");
  Json& own = pod["metadata"];
  for (const char* key : {"uid", "namespace", "name", "creationTimestamp"}) {
    own[key] = text(metadata, key);
  }
  if (const std::string name = shown(metadata, kNameAnnotation); !name.empty()) own["name"] = name;
  return pod_of(pod);
}

/// What is over first, and what its pods leave to be done is not waited for.
std::optional<Verdict> verdict_in(const Json& status) {
  for (const Json& one : part(status, "conditions")) {
    if (text(one, "status") != "True") continue;
    const std::string type = text(one, "type");
    const bool is_success = type == "Complete" || type == "SuccessCriteriaMet";
    if (!is_success && type != "Failed" && type != "FailureTarget") continue;
    return Verdict{is_success,
                   text(one, "reason"),
                   text(one, "message"),
                   time_in(one, "lastTransitionTime", {})};
  }
  return std::nullopt;
}

/// How the program of a pod ended; null if it never ran.
const Json& terminated_in(const Json& pod) { return part(state_of_main(pod), "terminated"); }

Outcome outcome_in(const Json& pod) {
  const Json& status = part(pod, "status");
  const Json& program = terminated_in(pod);
  const std::string reason = text(status, "reason");
  Outcome outcome;
  outcome.message = text(status, "message");
  if (outcome.message.empty()) outcome.message = text(program, "message");
  outcome.exit_code = number(program, "exitCode");
  outcome.signal = number(program, "signal");
  if (reason == kDeadline) {
    outcome.reason = EndReason::TimeLimit;
  } else if (text(program, "reason") == "OOMKilled") {
    outcome.reason = EndReason::OutOfMemory;
  } else if (program.is_null() || !reason.empty()) {  // evicted, or lost with its node
    outcome.reason = EndReason::SupervisorDied;
    if (outcome.message.empty()) outcome.message = reason;
  } else if (outcome.signal > 0) {
    outcome.reason = EndReason::Signalled;
  }
  return outcome;
}

Outcome outcome_in(const Verdict& verdict) {
  Outcome outcome;
  if (verdict.is_success) return outcome;
  outcome.reason = verdict.reason == kDeadline ? EndReason::TimeLimit : EndReason::SupervisorDied;
  outcome.message = verdict.message;
  return outcome;
}

}  // namespace

BatchJob batch_job_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  const Json& spec = part(object, "spec");
  BatchJob job;
  job.name = text(metadata, "name");
  job.stand_in = stand_in_of(object);
  job.stand_in.is_deleted = metadata.is_object() && metadata.contains("deletionTimestamp");
  job.command = cut_end(noted(metadata, kCommandAnnotation), kMostOfCommand);
  job.project = shown(metadata, kProjectAnnotation);
  job.group = shown(metadata, kGroupAnnotation);
  job.submission = noted(metadata, kSubmissionAnnotation);
  const int limit = number(part(part(spec, "template"), "spec"), "activeDeadlineSeconds");
  if (limit > 0) job.time_limit = std::chrono::seconds(limit);
  job.max_retries = number(spec, "backoffLimit");
  job.retries_lost = !part(spec, "podFailurePolicy").is_null();
  job.is_suspended = spec.is_object() && spec.value("suspend", false);
  job.verdict = verdict_in(part(object, "status"));
  return job;
}

EndedPod ended_pod_of(const Json& object) {
  const Pod read = pod_of(object);
  const Json& program = terminated_in(object);
  EndedPod pod;
  pod.uid = read.uid;
  pod.job = read.job;
  pod.name = read.name;
  pod.node = read.node;
  pod.allocation = read.allocation;
  pod.created = read.created;
  pod.started = time_in(program, "startedAt", read.started.value_or(read.created));
  pod.at = time_in(program, "finishedAt", pod.started);
  pod.outcome = outcome_in(object);
  pod.outcome.run_time = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max(pod.at - pod.started, WallTime::duration{}));
  return pod;
}

std::optional<Outcome> outcome_of(const BatchJob& job, const EndedPod* last) {
  const bool succeeded = last != nullptr && status_for(last->outcome) == Status::Finished;
  if (job.verdict) {
    // A pod that failed may be that of a Job that was told to succeed, or the other way round.
    const bool is_its = last != nullptr && succeeded == job.verdict->is_success;
    return is_its ? last->outcome : outcome_in(*job.verdict);
  }
  if (last == nullptr) return std::nullopt;
  const bool is_last = succeeded || (job.max_retries == 0 && !job.retries_lost);
  return is_last ? std::optional(last->outcome) : std::nullopt;
}

}  // namespace gflow::kube
