// SPDX-License-Identifier: Apache-2.0
#include "kube/movable.h"

#include <string_view>

namespace gflow::kube {
namespace {

/// That of system-cluster-critical; the usual ones end at half of it.
constexpr int kCritical = 2'000'000'000;

/// What made it makes it anew, as long as evicting it is no failure of that.
bool is_made_anew(const Pod& pod, const BatchJob* job) {
  const std::string_view owner(pod.owner);
  const std::string_view kind = owner.substr(0, owner.find(' '));
  // The pods of these are each node's own; without an owner it is gone for good.
  if (kind.empty() || kind == "DaemonSet" || kind == "Node") return false;
  if (kind != "Job") return true;
  return job != nullptr ? job->retries_lost : pod.may_evict == true;
}

/// Where else it could be is more than a question of room.
bool is_bound_to_others(const Pod& pod) {
  return pod.gang || !pod.ports.empty() || !pod.claims.empty() || !pod.devices.empty() ||
         !pod.rules.empty();
}

/// As for the cluster's autoscaler, whose annotation says that it may be lost.
bool loses_data(const Pod& pod) { return pod.has_local_data && pod.may_evict != true; }

}  // namespace

bool may_move(const Pod& pod, const BatchJob* job) {
  return !pod.node.empty() && !pod.is_deleted && pod.may_evict != false &&
         pod.priority < kCritical && !is_bound_to_others(pod) && !loses_data(pod) &&
         is_made_anew(pod, job);
}

}  // namespace gflow::kube
