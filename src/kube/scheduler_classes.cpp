// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/principal.h"
#include "kube/scheduler.h"

/// Which pods are alike, and in which class each of them waits.
namespace gflow::kube {
namespace {

constexpr std::size_t kMostClasses = 4096;  // kept though no pod of them waits

}  // namespace

Scheduler::ClassKey Scheduler::key_of(const Pod& pod) const {
  return {pod.wishes,
          extras_of(pod),
          pod.ports,
          neighbours_.bonds_of(pod),
          volumes_.storage_of(pod),
          devices_.wish_of(pod)};
}

Scheduler::Class& Scheduler::class_of(ClassKey key) {
  if (const auto at = classes_.find(key); at != classes_.end()) return at->second;
  if (classes_.size() >= kMostClasses) {
    std::erase_if(classes_, [](const auto& one) { return one.second.waiting == 0; });
  }
  const auto& [wishes, extras, ports, bonds, storage, devices] = key;
  Class made{next_class_++, wishes, extras, ports, bonds, storage, devices};
  return classes_.emplace(std::move(key), std::move(made)).first->second;
}

std::vector<Label> Scheduler::selector_of(const Class& pods) {
  return {{fmt::format("{}{}", kAdmitsPrefix, pods.id), ""}};
}

/// One for which nobody waited has to be asked for at every node: it may have been left out.
void Scheduler::join_class(PodEntry& entry) {
  Class& its = class_of(key_of(entry.pod));
  entry.pods_class = &its;
  if (!entry.pod.claims.empty()) claimants_.insert(entry.pod.uid);
  if (!entry.pod.devices.empty()) device_claimants_.insert(entry.pod.uid);
  const Job* job = entry.job.is_set() ? state_.find(entry.job) : nullptr;
  if (job != nullptr && job->spec.request.selector != selector_of(its)) {
    reclassed_.insert(entry.pod.uid);
  }
  if (its.waiting++ > 0) return;
  neighbours_.watch(its.id, its.bonds, its.wishes);
  judge_all();
}

void Scheduler::drop_class(PodEntry& entry) {
  if (entry.pods_class == nullptr) return;
  Class& its = *std::exchange(entry.pods_class, nullptr);
  claimants_.erase(entry.pod.uid);
  device_claimants_.erase(entry.pod.uid);
  if (--its.waiting == 0) neighbours_.unwatch(its.id);
}

/// Pods that wait and are not what they were to their neighbours, or have other volumes.
void Scheduler::sort_again() {
  if (neighbours_.take_news()) {
    for (const auto& [uid, entry] : pods_) {
      if (entry.pods_class != nullptr) relabelled_.insert(uid);
    }
  }
  sort_by_volumes();
  sort_by_devices();
}

/// Pods whose claims are others, and nodes whose devices are.
void Scheduler::sort_by_devices() {
  const DeviceNews news = devices_.take_news();
  if (news.is_empty()) return;
  if (news.is_all) judge_all();
  for (const std::string& node : news.nodes) {
    if (nodes_.contains(node)) rejudged_.insert(node);
  }
  for (const std::string& uid : device_claimants_) {
    if (!devices_.concerns(news, pods_.at(uid).pod)) continue;
    relabelled_.insert(uid);
    retries_refused_ = true;  // a class that it comes into may be one that nodes admit already
  }
  sort_relabelled();
}

void Scheduler::sort_by_volumes() {
  if (const VolumeNews news = volumes_.take_news(); !news.is_empty()) {
    has_volume_news_ = true;
    for (const std::string& uid : claimants_) {
      if (volumes_.concerns(news, pods_.at(uid).pod)) relabelled_.insert(uid);
    }
  }
  sort_relabelled();
}

void Scheduler::sort_relabelled() {
  std::map<Class*, std::map<ClassKey, std::vector<PodEntry*>>> others;
  for (const std::string& uid : std::exchange(relabelled_, {})) {
    const auto at = pods_.find(uid);
    if (at == pods_.end() || at->second.pods_class == nullptr) continue;
    PodEntry& entry = at->second;
    ClassKey key = key_of(entry.pod);
    const auto known = classes_.find(key);
    if (known != classes_.end() && &known->second == entry.pods_class) continue;
    others[entry.pods_class][std::move(key)].push_back(&entry);
  }
  for (auto& [its, keys] : others) {
    for (const auto& [key, entries] : keys) {
      if (entries.size() == its->waiting && turn_class(*its, key)) continue;
      for (PodEntry* entry : entries) {
        drop_class(*entry);
        join_class(*entry);
      }
    }
  }
}

/// All its pods have other volumes to choose from, and the same: it goes on as the class of these,
/// and the engine is told of nodes that are not what they were to it, and of nothing else. False:
/// it is more than that.
bool Scheduler::turn_class(Class& its, const ClassKey& key) {
  const ClassKey was{its.wishes, its.extras, its.ports, its.bonds, its.storage, its.devices};
  ClassKey now = was;
  std::get<Storage>(now) = std::get<Storage>(key);
  if (now != key) return false;
  if (const auto taken = classes_.find(key); taken != classes_.end()) {
    if (taken->second.waiting > 0) return false;
    classes_.erase(taken);
  }
  auto node = classes_.extract(was);
  node.key() = std::move(now);
  its.storage = std::get<Storage>(key);
  classes_.insert(std::move(node));
  judge_all();
  return true;
}

/// So that each keeps its place in the queue. Where no node admits one now, it waits as such do.
void Scheduler::tell_classes() {
  for (const std::string& uid : std::exchange(reclassed_, {})) {
    const auto at = pods_.find(uid);
    if (at == pods_.end() || at->second.role != Role::Queued) continue;
    PodEntry& entry = at->second;
    std::vector<Label> selector = selector_of(*entry.pods_class);
    const Job* job = state_.find(entry.job);
    if (job == nullptr || job->spec.request.selector == selector) continue;
    engine::event::Update update{{entry.job}, system_principal(), {}};
    update.changes.set(&gflow::Request::selector, std::move(selector));
    answer_.reset();
    step(update);
    if (!answer_) continue;
    leave(entry);
    admit(entry);
  }
}

/// Some were taken back of whom nobody was told yet: those who came after them, and are where they
/// are for the sake of these, are taken back, too.
void Scheduler::judge_again() {
  const auto minds = [this](const Bind& bind) {
    const NeighbourRules& rules = pods_.at(bind.uid).pod.rules;
    return !rules.near.empty() || !rules.spread.empty();
  };
  if (std::ranges::none_of(decided_.binds, minds)) return;
  std::vector<Bind> binds = std::exchange(decided_.binds, {});
  for (const Bind& bind : binds) unplace(pods_.at(bind.uid));
  for (Bind& bind : binds) {
    PodEntry& entry = pods_.at(bind.uid);
    join_class(entry);
    if (neighbours_.refusal(entry.pods_class->id, nodes_.at(bind.node).node).empty()) {
      drop_class(entry);
      place(entry, bind.node, bind.allocation);
      decided_.binds.push_back(std::move(bind));
      continue;
    }
    entry.role = Role::Queued;
    revoked_.push_back({entry.job, attempt_of(*state_.find(entry.job))->number});
    if (entry.gang) launched_gangs_.insert(entry.gang->name);
  }
}

}  // namespace gflow::kube
