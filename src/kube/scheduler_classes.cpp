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

Scheduler::Class& Scheduler::class_of(const Pod& pod) {
  ClassKey key{
      pod.wishes, extras_of(pod), pod.ports, neighbours_.bonds_of(pod), volumes_.storage_of(pod)};
  if (const auto at = classes_.find(key); at != classes_.end()) return at->second;
  if (classes_.size() >= kMostClasses) {
    std::erase_if(classes_, [](const auto& one) { return one.second.waiting == 0; });
  }
  const auto& [wishes, extras, ports, bonds, storage] = key;
  Class made{next_class_++, wishes, extras, ports, bonds, storage};
  return classes_.emplace(std::move(key), std::move(made)).first->second;
}

std::vector<Label> Scheduler::selector_of(const Class& pods) {
  return {{fmt::format("admits-{}", pods.id), ""}};
}

/// One for which nobody waited has to be asked for at every node: it may have been left out.
void Scheduler::join_class(PodEntry& entry) {
  Class& its = class_of(entry.pod);
  entry.pods_class = &its;
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
  if (--its.waiting == 0) neighbours_.unwatch(its.id);
}

void Scheduler::note_storage() {
  if (!volumes_.take_news()) return;
  for (const std::string& uid : claimants_) {
    relabelled_.insert(uid);
    if (pods_.at(uid).role == Role::Refused) new_.push_back(uid);
  }
}

/// Pods that wait and are not what they were to their neighbours, or have other volumes.
void Scheduler::sort_again() {
  note_storage();
  if (neighbours_.take_news()) {
    for (const auto& [uid, entry] : pods_) {
      if (entry.pods_class != nullptr) relabelled_.insert(uid);
    }
  }
  for (const std::string& uid : std::exchange(relabelled_, {})) {
    const auto at = pods_.find(uid);
    if (at == pods_.end() || at->second.pods_class == nullptr) continue;
    PodEntry& entry = at->second;
    if (&class_of(entry.pod) == entry.pods_class) continue;
    drop_class(entry);
    join_class(entry);
  }
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
      bind.is_wanted = entry.is_wanted;
      decided_.binds.push_back(std::move(bind));
      continue;
    }
    entry.role = Role::Queued;
    revoked_.push_back({entry.job, attempt_of(*state_.find(entry.job))->number});
    if (entry.gang) launched_gangs_.insert(entry.gang->name);
  }
}

}  // namespace gflow::kube
