// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/principal.h"
#include "core/stop.h"
#include "kube/scheduler.h"

/// Pods that make room for those of a higher priority, as far as their disruption budgets let them.
namespace gflow::kube {
namespace {

constexpr std::chrono::minutes kPause{1};  // after an eviction was refused
constexpr std::size_t kMostNamed = 3;

}  // namespace

/// Those that are stopped for another reason are being deleted already.
void Scheduler::take(const engine::effect::StopAttempt& stop) {
  const auto uid = by_job_.find(stop.job);
  const Job* job = state_.find(stop.job);
  const Stop* why = job == nullptr ? nullptr : stop_of(*job);
  if (uid == by_job_.end() || why == nullptr || why->reason != EndReason::Preempted) return;
  const Pod& pod = pods_.at(uid->second).pod;
  if (is_moving(pod.uid) && !are_all_waiting()) {  // it is looked at first whether that helps
    moving_->again[pod.uid] = {now_.mono, false};
    return;
  }
  looks_.insert(now_.mono + state_.policy().preemption.quantum);
  decided_.evictions.push_back(
      {pod.uid, pod.name_space, pod.name, why->by.name, is_moving(pod.uid)});
}

void Scheduler::not_evicted(const std::string& uid, const EvictionRefused& refusal) {
  const bool is_of_budget = refusal.is_of_budget;
  const auto at = pods_.find(uid);
  if (at == pods_.end() || at->second.role != Role::Bound || at->second.pod.is_deleted) return;
  const Job* job = state_.find(at->second.job);
  if (job == nullptr || !is_active(*job)) return;
  if (is_moving(uid)) return not_moved(uid, refusal);
  // One that was to move, and whose moves were given up meanwhile, is nobody's victim.
  if (!is_of_budget && preempts_) {
    if (!evicts_again_) events_.emplace_back(preempting(false));
    evicts_again_ = MonoTime::max();  // its pause begins when this is told
  }
  events_.emplace_back(engine::event::StopRefused{job->id, attempt_of(*job)->number});
  refused_.push_back(uid);
}

engine::event::Configure Scheduler::preempting(bool is_on) {
  policy_.preempt = is_on;
  return {policy_};
}

/// Those decided in a step in which the pod that they were for was not yet known to be gone.
void Scheduler::drop_needless_evictions() {
  if (decided_.evictions.empty()) return;
  std::set<JobId> needed;
  for (const auto& [job, uid] : by_job_) {
    const Job* waiting = state_.find(job);
    const auto* queued = waiting == nullptr ? nullptr : std::get_if<gflow::Queued>(&waiting->state);
    if (queued != nullptr) needed.insert(queued->victims.begin(), queued->victims.end());
  }
  std::erase_if(decided_.evictions, [&](const Evict& evict) {
    const PodEntry& entry = pods_.at(evict.uid);
    if (needed.contains(entry.job)) return false;
    if (!entry.job.is_set()) return true;
    const int attempt = attempt_of(*state_.find(entry.job))->number;
    events_.emplace_back(engine::event::StopRefused{entry.job, attempt});
    protected_.emplace(now_.mono, evict.uid);  // no longer than until that is told
    return true;
  });
}

/// Pauses that are over end, and those begin that were just told.
void Scheduler::pass_pauses() {
  if (evicts_again_ && *evicts_again_ <= now_.mono) {
    evicts_again_.reset();
    step(preempting(true));
  }
  while (!protected_.empty() && protected_.begin()->first <= now_.mono) {
    const auto at = pods_.find(protected_.begin()->second);
    protected_.erase(protected_.begin());
    if (at == pods_.end() || at->second.role != Role::Bound) continue;
    if (!may_be_evicted(at->second)) continue;  // it was to move
    engine::event::Update update{{at->second.job}, system_principal(), {}};
    update.changes.set(&JobSpec::preemption, Preemption::Requeue);
    step(update);
  }
  if (const auto due = looks_.upper_bound(now_.mono); due != looks_.begin()) {
    looks_.erase(looks_.begin(), due);
    step(engine::event::Tick{});
  }
  for (const std::string& uid : std::exchange(refused_, {})) {
    protected_.emplace(now_.mono + kPause, uid);
  }
  if (evicts_again_ == MonoTime::max()) evicts_again_ = now_.mono + kPause;
}

/// Whoever deleted it, its room is free before long: no other need be evicted for that.
void Scheduler::note_deleted(const PodEntry& entry) {
  const Job* job = state_.find(entry.job);
  if (!entry.pod.is_deleted || job == nullptr || !is_active(*job)) return;
  events_.emplace_back(engine::event::StopBegun{job->id, attempt_of(*job)->number});
}

std::string Scheduler::why_evicting(const gflow::Queued& queued) const {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const JobId victim : queued.victims) {
    const auto uid = by_job_.find(victim);
    if (uid == by_job_.end()) continue;  // it is gone
    if (names.size() < kMostNamed) {
      names.push_back(pods_.at(uid->second).pod.full_name());
    } else {
      ++more;
    }
  }
  if (names.empty()) return {};
  return fmt::format("It waits for {}{} to leave, which make room for it.{}",
                     fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more),
                     why_evicting_again(queued));
}

/// That a disruption budget keeps some of those who move for it; "" if none does.
std::string Scheduler::why_evicting_again(const gflow::Queued& queued) const {
  if (!moving_) return {};
  const auto kept = std::ranges::find_if(moving_->again, [&](const auto& one) {
    const auto at = pods_.find(one.first);
    return one.second.is_of_budget && at != pods_.end() &&
           std::ranges::binary_search(queued.victims, at->second.job);
  });
  if (kept == moving_->again.end()) return {};
  return fmt::format(" A disruption budget keeps {}, which is asked again each minute.",
                     pods_.at(kept->first).pod.full_name());
}

}  // namespace gflow::kube
