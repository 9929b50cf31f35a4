// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "kube/scheduler.h"

/// Pods that have their node, and wait for their claims to be bound.
namespace gflow::kube {
namespace {

constexpr std::chrono::minutes kMostForClaims{10};

}  // namespace

Bind Scheduler::bind_of(const PodEntry& entry) const {
  const Pod& pod = entry.pod;
  return {pod.uid,
          pod.name_space,
          pod.name,
          entry.node,
          entry.given,
          entry.seen.value_or(now_.mono),
          entry.claims,
          entry.devices};
}

/// What it takes for the pod to have its claims there; nothing: the node does not take it, as
/// others of this pass may have them.
std::optional<Scheduler::Steps> Scheduler::steps_for(const PodEntry& entry, const NodeEntry& node) {
  if (!lacks(node, *entry.pods_class).empty()) return std::nullopt;
  auto claims = volumes_.plan(entry.pod, node.node);
  if (!claims) return std::nullopt;
  auto devices = devices_.plan(entry.pod, node.node);
  if (!devices) return std::nullopt;
  return Steps{*std::move(claims), *std::move(devices)};
}

/// From now on what is decided of devices may be written.
void Scheduler::hand_out() {
  for (const Bind& bind : decided_.binds) {
    if (bind.claims.empty()) devices_.handed_out(bind.uid, bind.devices);
  }
}

void Scheduler::claims_written(const std::string& uid) {
  const auto at = pods_.find(uid);
  if (at == pods_.end()) return;
  PodEntry& entry = at->second;
  if (begin_anew(entry) || entry.role != Role::Launched) return;
  claiming_[uid] = now_.mono + kMostForClaims;
  has_volume_news_ = true;
}

/// Last, as those whose claims are bound are not decided on any more.
void Scheduler::see_claims() {
  const auto is_due = [this](const auto& one) { return one.second <= now_.mono; };
  const bool has_news = std::exchange(has_volume_news_, false);
  if (!has_news && std::ranges::none_of(claiming_, is_due)) return;
  for (const auto& [uid, until] : std::map(claiming_)) {
    PodEntry& entry = pods_.at(uid);
    const auto node = nodes_.find(entry.node);
    if (node == nodes_.end()) continue;  // which the engine is about to be told
    const auto are_bound = volumes_.are_bound(entry.pod, node->second.node, entry.claims);
    if (!are_bound) {
      not_bound(uid, are_bound.error().message);
    } else if (*are_bound) {
      claiming_.erase(uid);
      entry.claims.clear();
      decided_.binds.push_back(bind_of(entry));
    } else if (until <= now_.mono) {
      not_bound(uid, "its PersistentVolumeClaims were not bound in ten minutes");
    }
  }
}

}  // namespace gflow::kube
