// SPDX-License-Identifier: Apache-2.0
#include "engine/dependencies.h"

namespace gflow::engine {
namespace {

const std::set<JobId> kNoDependents;

}  // namespace

void DependencyGraph::count(Waiting& waiting, End end) {
  if (end == End::Finished) ++waiting.finished;
  if (end == End::Unfinished) ++waiting.unfinished;
}

DependencyState DependencyGraph::state(const Waiting& waiting) {
  const std::size_t all = waiting.on.size();
  if (waiting.mode == DependencyMode::All) {
    if (waiting.unfinished > 0) return DependencyState::Never;
    return waiting.finished == all ? DependencyState::Met : DependencyState::Unmet;
  }
  if (waiting.finished > 0) return DependencyState::Met;
  return waiting.unfinished == all ? DependencyState::Never : DependencyState::Unmet;
}

void DependencyGraph::add(const Job& job, const std::function<End(JobId)>& end_of) {
  const Dependencies& wants = job.spec.dependencies;
  if (wants.jobs.empty() || waiting_.contains(job.id)) return;
  Waiting waiting{.on = wants.jobs, .mode = wants.mode, .uid = job.spec.user.uid};
  for (const JobId id : waiting.on) {
    ++visits_;
    count(waiting, end_of(id));
    std::set<JobId>& dependents = dependents_[id];
    if (dependents.empty()) changed_.push_back(id);
    dependents.insert(job.id);
  }
  edges_ += waiting.on.size();
  users_[waiting.uid] += waiting.on.size();
  waiting_.emplace(job.id, std::move(waiting));
}

void DependencyGraph::remove(JobId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  const Waiting& waiting = found->second;
  for (const JobId on : waiting.on) {
    ++visits_;
    const auto dependents = dependents_.find(on);
    dependents->second.erase(id);
    if (!dependents->second.empty()) continue;
    dependents_.erase(dependents);
    changed_.push_back(on);
  }
  edges_ -= waiting.on.size();
  const auto user = users_.find(waiting.uid);
  user->second -= waiting.on.size();
  if (user->second == 0) users_.erase(user);
  waiting_.erase(found);
}

void DependencyGraph::count_end(JobId id, End end) {
  for (const JobId dependent : dependents(id)) {
    ++visits_;
    count(waiting_.at(dependent), end);
  }
}

DependencyState DependencyGraph::state(JobId id) const {
  const auto found = waiting_.find(id);
  return found == waiting_.end() ? DependencyState::Met : state(found->second);
}

DependencyState DependencyGraph::state_of(const Dependencies& wants,
                                          const std::function<End(JobId)>& end_of) {
  if (wants.jobs.empty()) return DependencyState::Met;
  Waiting waiting{.on = wants.jobs, .mode = wants.mode};
  for (const JobId id : waiting.on) count(waiting, end_of(id));
  return state(waiting);
}

const std::set<JobId>& DependencyGraph::dependents(JobId id) const {
  const auto found = dependents_.find(id);
  return found == dependents_.end() ? kNoDependents : found->second;
}

std::size_t DependencyGraph::edges_of(std::uint32_t uid) const {
  const auto user = users_.find(uid);
  return user == users_.end() ? 0 : user->second;
}

}  // namespace gflow::engine
