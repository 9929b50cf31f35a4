// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/time.h"
#include "engine/state.h"
#include "kube/batch_job.h"
#include "kube/budgets.h"
#include "kube/objects.h"

namespace gflow::kube {

/// What was read of a cluster.
struct ClusterFacts {
  std::string scheduler = "gflow";        ///< schedulerName of the pods that are shown
  std::map<std::string, Node> nodes;      ///< by uid
  std::map<std::string, Pod> pods;        ///< by uid; of other schedulers, too
  std::map<std::string, BatchJob> jobs;   ///< by uid
  std::map<std::string, EndedPod> ended;  ///< by uid; of these jobs
  std::map<std::string, Budget> budgets;  ///< by uid
  engine::GpuQuota quota;
  Levels levels;                         ///< of the network
  bool are_levels_unread = false;        ///< LevelsRead::are_unread()
  std::map<GangName, NearWish> nears{};  ///< of PodGroups, where they are known
};

/// A cluster as a State that shows it: pods are jobs (name: the pod, user: its namespace), nodes
/// are nodes. A Job that gbatch made is one job from its first day to its last: while it has no
/// pod, as one that waits; with its number, whichever pod it has. Nothing is decided in it; what
/// waits in the cluster waits there.
struct Picture {
  engine::State state;
  std::map<JobId, std::string> told;     ///< what the scheduler wrote of why it waits
  std::map<std::string, JobId> numbers;  ///< by uid of the Job, or of a pod that is of none
};

/// What a scheduler that was told the same would begin with, but for what only shows: a pod that is
/// not looked at (it has gates, or asks for what cannot be judged) is a job on hold, which says so;
/// a node that takes no pods is drained. CPUs are whole: a pod that waits for a part of one is
/// shown with one, and what runs on a node takes as many as all of it together. Pods that would
/// start elsewhere if they were evicted (movable.h), and may be by their disruption budgets, are
/// jobs that may be preempted.
[[nodiscard]] Picture picture_of(const ClusterFacts& facts, Now now, std::uint64_t revision);
/// What the engine says of jobs in a picture, for who knows them as pods: "pod default/train" in
/// place of "job 7".
[[nodiscard]] std::string with_pods_named(std::string message, const engine::State& state);

}  // namespace gflow::kube
