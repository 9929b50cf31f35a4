// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduler.h"

/// What it knows, for who shows it.
namespace gflow::kube {

std::vector<Scheduler::Seen> Scheduler::seen() const {
  std::vector<Seen> all;
  for (const auto& [uid, entry] : pods_) {
    if (!is_mine(entry.pod)) continue;
    all.push_back({.pod = &entry.pod,
                   .job = entry.job.is_set() ? state_.find(entry.job) : nullptr,
                   .has_class = entry.pods_class != nullptr});
    if (!entry.gang) continue;
    const Gang& gang = gangs_.at(entry.gang->name);
    all.back().gang = gang.number;
    all.back().least = gang.least;
    all.back().near = gang.near.near;
    all.back().is_held = !gang.near.trouble.empty();
  }
  return all;
}

std::vector<Machine> Scheduler::machines() {
  std::vector<Machine> all;
  for (auto& [name, node] : nodes_) {
    count_extras(node);
    all.push_back(machine_of(node));
  }
  return all;
}

}  // namespace gflow::kube
