// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "core/job.h"
#include "kube/objects.h"

/// Jobs of a cluster (batch/v1) that gbatch made, and what became of their pods.
namespace gflow::kube {

/// On such a Job and on its pods: what is followed.
constexpr std::string_view kSubmittedLabel = "gflow/submitted";
/// What a Job was made of: a submission is known again by it.
constexpr std::string_view kSubmissionAnnotation = "gflow/submission";
/// The name that was asked for; that of the Job is another, as several may have the same.
constexpr std::string_view kNameAnnotation = "gflow/name";
constexpr std::string_view kCommandAnnotation = "gflow/command";
constexpr std::string_view kProjectAnnotation = "gflow/project";
constexpr std::string_view kGroupAnnotation = "gflow/group";

/// That it is over, as the Job controller says.
struct Verdict {
  bool is_success = false;
  std::string reason;
  std::string message;
  WallTime at;
};

struct BatchJob {
  std::string name;  ///< of the object
  /// Its pod before it is there, with uid, age and name of the Job: as which its pod is shown.
  Pod stand_in;
  std::string command;
  std::string project;
  std::string group;
  std::string submission;
  std::optional<std::chrono::seconds> time_limit;
  int max_retries = 0;
  bool retries_lost = false;  ///< pods that were evicted or lost do not count
  bool is_suspended = false;
  std::optional<Verdict> verdict;
};

/// A pod of a BatchJob that runs no more.
struct EndedPod {
  std::string uid;
  std::string job;  ///< uid
  std::string name;
  std::string node;        ///< "" if it never was on one
  std::string allocation;  ///< the annotation gflow/allocation
  WallTime created;
  WallTime started;
  WallTime at;
  Outcome outcome;
};

[[nodiscard]] BatchJob batch_job_of(const nlohmann::json& object);
[[nodiscard]] EndedPod ended_pod_of(const nlohmann::json& object);

/// How a Job ended, by what is known of it and of its newest pod that ended (null: of none); empty:
/// it has not, or may start another pod.
[[nodiscard]] std::optional<Outcome> outcome_of(const BatchJob& job, const EndedPod* last);

}  // namespace gflow::kube
