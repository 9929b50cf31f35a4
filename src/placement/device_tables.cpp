// SPDX-License-Identifier: Apache-2.0
#include "placement/device_tables.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gflow::placement {

const DeviceTable* DeviceTables::of(const Node& node) {
  // Beyond this, topologies of nodes that were read anew are piling up.
  constexpr std::size_t kMax = 20'000;
  if (!node.topology || node.topology->gpus == 0) return nullptr;
  if (node.topology->gpus != std::ssize(node.devices)) return nullptr;
  if (const auto found = known_.find(node.topology.get()); found != known_.end()) {
    return found->second.table.get();
  }
  if (known_.size() >= kMax) known_.clear();
  Known added{.topology = node.topology, .table = nullptr};
  const auto same = std::ranges::find_if(
      known_, [&node](const auto& entry) { return *entry.second.topology == *node.topology; });
  if (same != known_.end()) {
    added.table = same->second.table;
  } else {
    added.table = std::make_shared<const DeviceTable>(
        node.topology->gpus, *node.topology, DemandProfile::usual());
  }
  return known_.emplace(node.topology.get(), std::move(added)).first->second.table.get();
}

DeviceChoice choose_devices(const DeviceTable& table,
                            const Ledger& ledger,
                            NodeIndex node,
                            std::span<const std::uint8_t> fits,
                            int count) {
  DeviceQuestion question;
  question.count = count;
  for (std::size_t i = 0; i < fits.size(); ++i) question.free[i] = fits[i] != 0;
  std::vector<DeviceSet> held;
  for (const Hold& hold : ledger.holds(node)) {
    DeviceSet& devices = held.emplace_back();
    for (const int device : hold.devices) {
      if (static_cast<std::size_t>(device) < fits.size()) {
        devices.set(static_cast<std::size_t>(device));
      }
    }
    if (devices.none()) held.pop_back();
  }
  question.held = held;
  return table.choose(question);
}

}  // namespace gflow::placement
