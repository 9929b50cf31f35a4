// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "kube/scheduler.h"

/// Whether what is known of pods and what the engine knows of them are one.
namespace gflow::kube {

std::string Scheduler::check() const {
  if (std::string wrong = state_.check(); !wrong.empty()) return wrong;
  if (std::string wrong = neighbours_.check(); !wrong.empty()) return wrong;
  std::size_t jobs = 0;
  std::size_t placed = 0;
  std::map<const Class*, std::size_t> waiting;
  for (const auto& [uid, entry] : pods_) {
    std::string wrong = check_job(entry);
    if (wrong.empty()) wrong = check_place(entry);
    if (!wrong.empty()) return uid + ": " + wrong;
    if (entry.job.is_set()) ++jobs;
    if (!entry.node.empty()) ++placed;
    if (entry.pods_class != nullptr) ++waiting[entry.pods_class];
  }
  if (jobs != by_job_.size()) return fmt::format("{} jobs of {} pods", by_job_.size(), jobs);
  for (const auto& [node, uids] : on_node_) placed -= uids.size();
  if (placed != 0) return "pods on nodes that are not known to be there";
  for (const auto& [key, one] : classes_) {
    if (one.waiting != waiting[&one]) {
      return fmt::format("{} wait of class {}, not {}", waiting[&one], one.id, one.waiting);
    }
  }
  return {};
}

std::string Scheduler::check_job(const PodEntry& entry) const {
  const bool waits = entry.role == Role::Queued;
  const bool holds = entry.role == Role::Launched || entry.role == Role::Bound;
  if (entry.job.is_set() != (waits || holds)) return "a job without a reason, or none";
  if (!entry.job.is_set()) return {};
  const auto uid = by_job_.find(entry.job);
  if (uid == by_job_.end() || uid->second != entry.pod.uid) return "its job is another's";
  const Job* job = state_.find(entry.job);
  if (job == nullptr) return "the engine does not know it";
  if (!(waits ? is_pending(*job) : is_active(*job))) {
    return fmt::format("{} in the engine", status_name(status_of(*job)));
  }
  if (waits && job->spec.request.selector != selector_of(*entry.pods_class)) {
    return "waits in the engine as another";
  }
  if (holds && attempt_of(*job)->allocation.node != entry.node) return "is on two nodes";
  return {};
}

std::string Scheduler::check_place(const PodEntry& entry) const {
  const bool is_placed =
      entry.role == Role::Launched || entry.role == Role::Bound || entry.role == Role::Foreign;
  if (is_placed == entry.node.empty()) return "is on a node, or none, without a reason";
  if (!is_placed) {
    return entry.role == Role::Queued && entry.pods_class == nullptr ? "waits as nothing" : "";
  }
  const auto at = on_node_.find(entry.node);
  if (at == on_node_.end() || !at->second.contains(entry.pod.uid)) return "its node forgot it";
  return entry.pods_class == nullptr ? "" : "waits on a node";
}

}  // namespace gflow::kube
