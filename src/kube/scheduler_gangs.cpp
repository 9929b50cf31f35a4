// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"
#include "kube/limits.h"
#include "kube/scheduler.h"

/// Pods that start together: gangs of the engine, for as long as they have pods.
namespace gflow::kube {
namespace {

/// Labels of its own pod affinity that its like meet: all of a gang alike in it have to be in one
/// value of each, unless others meet it already.
std::vector<std::string> shared_by(const Pod& pod) {
  std::vector<std::string> labels;
  for (const NeighbourTerm& term : pod.rules.near) {
    const bool is_met =
        selects(term.pods, pod.labels) &&
        std::ranges::find(term.name_spaces, pod.name_space) != term.name_spaces.end();
    if (is_met) labels.push_back(term.topology_key);
  }
  std::ranges::sort(labels);
  labels.erase(std::ranges::unique(labels).begin(), labels.end());
  return labels;
}

constexpr std::size_t kMostShown = 317;  // of what somebody wrote

template <typename Key>
void drop_one(std::map<Key, std::size_t>& counts, const Key& key) {
  const auto at = counts.find(key);
  if (--at->second == 0) counts.erase(at);
}

/// That they are in one domain of the level.
std::string in_one(const std::string& level) {
  return level.empty() ? "" : fmt::format(" in one {} ({})", level_word(level), level);
}

}  // namespace

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
  entry.near = entry.pod.near;
  entry.shared = shared_by(entry.pod);
  ++gang.wishes[entry.near];
  for (const std::string& label : entry.shared) ++gang.shared[label];
  if (name.source != GangSource::Pods) sources_.insert(name.source);
  size_gang(name, gang);
}

void Scheduler::leave_gang(PodEntry& entry) {
  if (!entry.gang) return;
  const auto at = gangs_.find(entry.gang->name);
  at->second.pods.erase(entry.pod.uid);
  at->second.sizes.erase(at->second.sizes.find(entry.gang->size));
  drop_one(at->second.wishes, entry.near);
  for (const std::string& label : entry.shared) drop_one(at->second.shared, label);
  if (at->second.pods.empty()) {
    const Levels labels = at->second.near.near.levels;
    gangs_.erase(at);
    drop_labels(labels);
  } else {
    size_gang(at->first, at->second);
  }
  entry.gang.reset();
}

/// How many start together: as its PodGroup says, or the one of its pods that says most.
std::size_t Scheduler::least_of(const GangName& name, const Gang& gang) const {
  if (name.source == GangSource::Pods) return *gang.sizes.rbegin();
  const auto group = groups_.find(name);
  return group == groups_.end() ? gang.least : group->second.least;
}

/// How near each other: as the one of its pods, or its PodGroup, says that says the narrowest.
NearGang Scheduler::near_of(const GangName& name, const Gang& gang) const {
  std::map<NearWish, std::size_t> with_group;
  const bool is_said_by_group =
      name.source != GangSource::Pods && !gang.wishes.contains(gang.group_near);
  if (is_said_by_group) {  // there may be as many as pods
    with_group = gang.wishes;
    ++with_group[gang.group_near];
  }
  const auto& wishes = is_said_by_group ? with_group : gang.wishes;
  std::vector<std::string> shared;
  for (const auto& [label, pods] : gang.shared) {
    if (pods == gang.pods.size()) shared.push_back(label);
  }
  const std::string source = fmt::format("ConfigMap {}", limits_name_of(name_));
  return near_gang_of(levels_, wishes, shared, source, are_levels_unread_);
}

/// That, where it is another now. Those that waited for it are looked at again.
void Scheduler::size_gang(const GangName& name, Gang& gang) {
  if (const auto group = groups_.find(name); group != groups_.end()) {
    gang.group_near = group->second.near;
  }
  const std::size_t least = least_of(name, gang);
  NearGang near = near_of(name, gang);
  if (gang.least == least && gang.near == near) return;
  gang.least = least;
  const NearGang before = std::exchange(gang.near, std::move(near));
  use_labels(gang.near.near.levels);
  drop_labels(before.near.levels);
  bool has_jobs = false;
  for (const std::string& uid : gang.pods) {
    const PodEntry& entry = pods_.at(uid);
    has_jobs = has_jobs || entry.job.is_set();
    if (entry.role == Role::Refused) new_.push_back(uid);
  }
  if (!has_jobs) return;
  state_.put_gang(gang.number, least, gang.near.near);
  state_.hold_gang(gang.number, !gang.near.trouble.empty());
  events_.emplace_back(engine::event::Tick{});
}

void Scheduler::divide(Levels levels, bool are_unread) {
  if (levels == levels_ && are_unread == are_levels_unread_) return;
  levels_ = std::move(levels);
  are_levels_unread_ = are_unread;
  know_labels();
  for (auto& [name, gang] : gangs_) size_gang(name, gang);
  for (auto& [uid, entry] : pods_) {
    if (entry.gang || entry.pod.near.required.empty()) continue;
    if (entry.role == Role::Refused) new_.push_back(uid);
    if (entry.role != Role::Queued || gang_trouble(entry).empty()) continue;
    leave(entry);
    admit(entry);
  }
}

void Scheduler::use_labels(const Levels& labels) {
  for (const std::string& label : labels) ++gang_labels_[label];
  know_labels();
}

void Scheduler::drop_labels(const Levels& labels) {
  for (const std::string& label : labels) drop_one(gang_labels_, label);
  know_labels();
}

/// The engine is told of the levels, and of labels that gangs go by beside them: of a number of
/// these, as who makes pods may name any. Those that nobody goes by make way when it is reached.
void Scheduler::know_labels() {
  constexpr std::size_t kMostOfGangs = 64;
  std::set<std::string> known = labels_;
  known.insert(levels_.begin(), levels_.end());
  const auto is_known = [&](const auto& used) { return known.contains(used.first); };
  const bool is_all = std::ranges::all_of(gang_labels_, is_known);
  const std::size_t most = levels_.size() + kMostOfGangs;
  if (!is_all || known.size() > most) {
    known = {levels_.begin(), levels_.end()};
    for (const std::string& label : labels_of_gangs()) {
      if (known.size() >= most) break;
      known.insert(label);
    }
  }
  if (known == labels_) return;
  labels_ = std::move(known);
  judge_all();
}

/// Those that one of them has to go by come first, then as many of each namespace: of these the
/// ones that are known already.
std::vector<std::string> Scheduler::labels_of_gangs() const {
  using Rank = std::pair<bool, std::size_t>;
  std::map<std::string, Rank> ranks;
  std::map<std::pair<std::string, bool>, std::set<std::string>> of_name_space;
  const auto rank = [&](const GangName& name, const engine::Nearness& near, bool are_known) {
    for (std::size_t i = 0; i < near.levels.size(); ++i) {
      const std::string& label = near.levels[i];
      const bool is_spare = i >= near.required;
      if (labels_.contains(label) != are_known) continue;
      auto& its = of_name_space[{name.name_space, is_spare}];
      if (!its.insert(label).second) continue;
      const Rank found{is_spare, its.size()};
      const auto [at, is_new] = ranks.try_emplace(label, found);
      if (!is_new) at->second = std::min(at->second, found);
    }
  };
  for (const bool are_known : {true, false}) {
    for (const auto& [name, gang] : gangs_) rank(name, gang.near.near, are_known);
  }
  std::vector<std::pair<Rank, std::string>> sorted;
  for (const auto& [label, found] : ranks) sorted.emplace_back(found, label);
  std::ranges::sort(sorted);
  std::vector<std::string> labels;
  for (auto& [found, label] : sorted) labels.push_back(std::move(label));
  return labels;
}

/// Before its job is told to the engine.
void Scheduler::tell_gang(const PodEntry& entry) {
  if (!entry.gang) return;
  const Gang& gang = gangs_.at(entry.gang->name);
  state_.put_gang(gang.number, gang.least, gang.near.near);
  state_.join_gang(entry.job, gang.number);
  if (!gang.near.trouble.empty()) state_.hold_gang(gang.number, true);
}

/// That nobody says how many start together with it, or with whom it is to be near; "" if somebody
/// does.
std::string Scheduler::gang_trouble(const PodEntry& entry) const {
  const bool is_divided = !levels_.empty() || are_levels_unread_;
  if (!entry.gang && is_divided && !entry.pod.near.required.empty()) {
    return fmt::format(
        "It has to be in one domain of '{}' with others, and it is not said with whom: {} and {} "
        "on its pods do, also for those of Kueue.",
        cut_end(printable(entry.pod.near.required), kMostShown),
        kGangAnnotation,
        kGangSizeAnnotation);
  }
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
/// One that was to be in a domain is tried in the others, a few of them now and the rest in the
/// next decision; another is held until all such have been looked at, so that each is at most once.
void Scheduler::take_back_gangs() {
  constexpr int kMostTries = 8;
  std::map<engine::GangNumber, int> tries;
  std::set<engine::GangNumber> held;
  while (!launched_gangs_.empty()) {
    const auto gang = gangs_.find(*launched_gangs_.begin());
    launched_gangs_.erase(launched_gangs_.begin());
    if (gang == gangs_.end()) continue;
    const engine::GangNumber number = gang->second.number;
    if (!is_broken(gang->second)) {
      if (!gang->second.near.near.levels.empty()) state_.avoid_no_domain(number);
      continue;
    }
    const bool has_others = state_.avoid_last_domain(number);
    state_.hold_gang(number, true);
    take_back(gang->second);
    judge_again();
    sort_by_volumes();  // of which some are free again, for others
    take_back();
    if (has_others && ++tries[number] < kMostTries) {
      state_.hold_gang(number, !gang->second.near.trouble.empty());
      step(engine::event::Tick{});
      take_back();
    } else {
      held.insert(number);
      if (has_others) events_.emplace_back(engine::event::Tick{});
    }
  }
  for (const auto& [name, gang] : gangs_) {
    if (held.contains(gang.number)) state_.hold_gang(gang.number, !gang.near.trouble.empty());
  }
}

void Scheduler::take_back(const Gang& gang) {
  std::erase_if(decided_.binds, [&](const Bind& bind) {
    if (!gang.pods.contains(bind.uid) || !pods_.at(bind.uid).job.is_set()) return false;
    take_back(pods_.at(bind.uid));
    return true;
  });
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
  return fmt::format("{} of its gang {} {} together{}",
                     needed == 1 ? "1 pod" : fmt::format("{} pods", needed),
                     entry.gang->name.name,
                     needed == 1 ? "starts" : "start",
                     in_one(gang->level));
}

/// Why a pod whose gang does not start waits; "" if that is not it.
std::string Scheduler::why_gang(const PodEntry& entry) const {
  if (entry.gang && !gangs_.at(entry.gang->name).near.trouble.empty()) {
    return gangs_.at(entry.gang->name).near.trouble;
  }
  if (std::string home = why_at_home(entry); !home.empty()) return home;
  const std::string with = with_gang(entry);
  if (with.empty()) return {};
  const engine::GangView gang = *state_.gang_of(entry.job);
  std::string but = "and there is no room for all of them";
  if (gang.start == engine::GangStart::NotYet) {
    but = fmt::format("of which {} {}", gang.waiting, gang.waiting == 1 ? "waits" : "wait");
  } else if (const std::string none = why_no_domain(gangs_.at(entry.gang->name)); !none.empty()) {
    but = none;
  } else if (gang.room) {
    but = fmt::format("and {} room for {}",
                      gang.level.empty() ? "there is" : "the one with most room has",
                      *gang.room);
  }
  return fmt::format("{}, {}.", with, but);
}

/// That there is no domain in which all of it have to be; "" if there is, or they have not.
std::string Scheduler::why_no_domain(const Gang& gang) const {
  const engine::Nearness& near = gang.near.near;
  const std::span levels(near.levels.begin(), near.required);
  for (const std::string& label : levels) {
    if (!labels_.contains(label)) {
      return fmt::format("and {} is not looked at, as gangs go by too many labels of nodes", label);
    }
  }
  const auto has_all = [levels](const auto& node) {
    return std::ranges::all_of(
        levels, [&](const std::string& label) { return node.second.node.labels.contains(label); });
  };
  if (levels.empty() || std::ranges::any_of(nodes_, has_all)) return {};
  return levels.size() == 1 ? "and no node has that label"
                            : fmt::format("and no node has all of {}", fmt::join(levels, ", "));
}

/// Of one that has to go where others of its gang run; "" of another.
std::string Scheduler::why_at_home(const PodEntry& entry) const {
  const auto gang = state_.gang_of(entry.job);
  if (!gang || gang->level.empty() || gang->active == 0) return {};
  return fmt::format("It has to be in the {} ({}) where its gang {} runs.",
                     level_word(gang->level),
                     gang->level,
                     entry.gang->name.name);
}

}  // namespace gflow::kube
