// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "kube/scheduler.h"

/// Pods that start together: gangs of the engine, for as long as they have pods.
namespace gflow::kube {

void Scheduler::put(PodGroup group) {
  group_names_[group.uid] = group.name;
  const auto [at, is_new] = groups_.try_emplace(group.name, group);
  if (!is_new && at->second == group) return;
  at->second = group;
  const auto gang = gangs_.find(group.name);
  if (gang == gangs_.end()) return;
  size_gang(group.name, gang->second);
}

/// What is known of its pods is kept until another of its name comes.
void Scheduler::group_gone(const std::string& uid) {
  const auto at = group_names_.find(uid);
  if (at == group_names_.end()) return;
  const auto group = groups_.find(at->second);
  if (group != groups_.end() && group->second.uid == uid) groups_.erase(group);
  group_names_.erase(at);
}

void Scheduler::join_gang(PodEntry& entry) {
  if (!entry.pod.gang) return;
  const GangName& name = entry.pod.gang->name;
  const auto [at, is_new] = gangs_.try_emplace(name);
  Gang& gang = at->second;
  if (is_new) gang.number = ++last_gang_;
  gang.pods.insert(entry.pod.uid);
  gang.sizes.insert(entry.pod.gang->size);
  entry.gang = entry.pod.gang;
  if (name.source != GangSource::Pods) sources_.insert(name.source);
  size_gang(name, gang);
}

void Scheduler::leave_gang(PodEntry& entry) {
  if (!entry.gang) return;
  const auto at = gangs_.find(entry.gang->name);
  at->second.pods.erase(entry.pod.uid);
  at->second.sizes.erase(at->second.sizes.find(entry.gang->size));
  if (at->second.pods.empty()) {
    gangs_.erase(at);
  } else {
    size_gang(at->first, at->second);
  }
  entry.gang.reset();
}

/// How many start together: as its PodGroup says, or the one of its pods that says most. Those
/// that waited for that are looked at again.
void Scheduler::size_gang(const GangName& name, Gang& gang) {
  std::size_t least = gang.least;
  if (name.source != GangSource::Pods) {
    if (const auto group = groups_.find(name); group != groups_.end()) least = group->second.least;
  } else {
    least = *gang.sizes.rbegin();
  }
  if (std::exchange(gang.least, least) == least) return;
  bool has_jobs = false;
  for (const std::string& uid : gang.pods) {
    const PodEntry& entry = pods_.at(uid);
    has_jobs = has_jobs || entry.job.is_set();
    if (entry.role == Role::Refused) new_.push_back(uid);
  }
  if (!has_jobs) return;
  state_.put_gang(gang.number, least);
  events_.emplace_back(engine::event::Tick{});
}

/// Before its job is told to the engine.
void Scheduler::tell_gang(const PodEntry& entry) {
  if (!entry.gang) return;
  const Gang& gang = gangs_.at(entry.gang->name);
  state_.put_gang(gang.number, gang.least);
  state_.join_gang(entry.job, gang.number);
}

/// That nobody says how many start together with it; "" if somebody does.
std::string Scheduler::gang_trouble(const PodEntry& entry) const {
  if (!entry.gang || gangs_.at(entry.gang->name).least > 0) return {};
  const GangName& name = entry.gang->name;
  return fmt::format(
      "It starts together with others, and the PodGroup {}/{} of {} that says with "
      "how many is not there.",
      name.name_space,
      name.name,
      api_of(name.source));
}

/// A gang of which a node turned out to take too few waits as a whole: nobody was told of it yet.
/// It is held until all such have been looked at, so that each is at most once.
void Scheduler::take_back_gangs() {
  std::set<engine::GangNumber> held;
  while (!launched_gangs_.empty()) {
    const auto gang = gangs_.find(*launched_gangs_.begin());
    launched_gangs_.erase(launched_gangs_.begin());
    if (gang == gangs_.end() || !is_broken(gang->second)) continue;
    held.insert(gang->second.number);
    state_.hold_gang(gang->second.number, true);
    std::erase_if(decided_.binds, [&](const Bind& bind) {
      if (!gang->second.pods.contains(bind.uid) || !pods_.at(bind.uid).job.is_set()) return false;
      take_back(pods_.at(bind.uid));
      return true;
    });
    judge_again();
    sort_by_volumes();  // of which some are free again, for others
    take_back();
  }
  for (const engine::GangNumber number : held) state_.hold_gang(number, false);
}

/// Whether some of its pods were just given a node, who should start together with more.
bool Scheduler::is_broken(const Gang& gang) const {
  std::size_t launched = 0;
  JobId job;
  for (const Bind& bind : decided_.binds) {
    if (!gang.pods.contains(bind.uid) || !pods_.at(bind.uid).job.is_set()) continue;
    ++launched;
    job = pods_.at(bind.uid).job;
  }
  const auto now = state_.gang_of(job);
  if (!now) return false;
  const bool is_alone = now->active > launched && now->active + now->waiting < now->least;
  return now->active < now->least && !is_alone;
}

/// It waits again, at once.
void Scheduler::take_back(PodEntry& entry) {
  unplace(entry);
  entry.role = Role::Queued;
  join_class(entry);
  revoked_.push_back({entry.job, attempt_of(*state_.find(entry.job))->number});
}

/// That it does not start alone; "" if it does.
std::string Scheduler::with_gang(const PodEntry& entry) const {
  const auto gang = state_.gang_of(entry.job);
  if (!gang || gang->start == engine::GangStart::Alone) return {};
  const std::size_t needed = gang->least - gang->active;
  return fmt::format("{} pods of its gang {} start together", needed, entry.gang->name.name);
}

/// Why a pod whose gang does not start waits; "" if that is not it.
std::string Scheduler::why_gang(const PodEntry& entry) const {
  const std::string with = with_gang(entry);
  if (with.empty()) return {};
  const engine::GangView gang = *state_.gang_of(entry.job);
  std::string but = "and there is no room for all of them";
  if (gang.start == engine::GangStart::NotYet) {
    but = fmt::format("of which {} wait", gang.waiting);
  } else if (gang.room) {
    but = fmt::format("and there is room for {}", *gang.room);
  }
  return fmt::format("{}, {}.", with, but);
}

}  // namespace gflow::kube
