// SPDX-License-Identifier: Apache-2.0
#include "kube/predicates.h"
#include "kube/scheduler.h"

namespace gflow::kube {

Counts Scheduler::counts() const {
  Counts counts;
  counts.nodes = nodes_.size();
  const auto wait = [&counts](WaitsFor what) {
    ++counts.waiting.at(static_cast<std::size_t>(what));
  };
  for (const auto& [uid, entry] : pods_) {
    if (entry.role == Role::Queued) wait(queued_for(entry));
    if (entry.role == Role::Launched) wait(WaitsFor::Binding);
    if (entry.role == Role::Refused) wait(refused_for(entry));
  }
  for (const auto& [name, node] : nodes_) count_gpus(node, counts);
  return counts;
}

WaitsFor Scheduler::queued_for(const PodEntry& entry) const {
  const auto gang = state_.gang_of(entry.job);
  if (gang && gang->start == engine::GangStart::NotYet) return WaitsFor::Gang;
  return state_.is_at_user_limit(entry.job) ? WaitsFor::Limit : WaitsFor::Room;
}

WaitsFor Scheduler::refused_for(const PodEntry& entry) const {
  if (entry.trouble.empty()) return WaitsFor::Node;
  return gang_trouble(entry).empty() ? WaitsFor::Request : WaitsFor::Gang;
}

void Scheduler::count_gpus(const NodeEntry& node, Counts& counts) const {
  const auto gpus = [&counts](GpuState state) -> std::int64_t& {
    return counts.gpus.at(static_cast<std::size_t>(state));
  };
  const placement::Ledger& ledger = state_.ledger();
  const auto at = ledger.find(node.node.name);
  const bool is_open = !is_closed(node.node);
  for (const Device& device : node.sent.devices) {
    if (!device.processes.empty()) {
      gpus(GpuState::Others) += Share::kWholeParts;
      continue;
    }
    const auto index = static_cast<std::size_t>(device.index);
    const bool is_known = at && index < ledger.state(*at).devices.size();
    const Share free = is_known ? ledger.state(*at).devices[index].free : Share::whole();
    gpus(GpuState::Held) += Share::kWholeParts - free.parts;
    gpus(is_open ? GpuState::Free : GpuState::Closed) += free.parts;
  }
}

}  // namespace gflow::kube
