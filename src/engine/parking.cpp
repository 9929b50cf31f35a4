// SPDX-License-Identifier: Apache-2.0
#include "engine/parking.h"

#include <algorithm>

namespace gflow::engine {
namespace {

/// Null if it has several or none, or it is not there now.
const Device* only_device_of(const Index& index, const Attempt& attempt) {
  const Allocation& there = attempt.allocation;
  if (there.gpus.size() != 1 || !attempt.peers.empty()) return nullptr;
  const auto node = index.nodes.find(there.node);
  if (node == index.nodes.end() || !node->second.machine.parks) return nullptr;
  const auto& devices = node->second.machine.devices;
  const auto device = std::ranges::find(devices, there.gpus.front(), &Device::index);
  return device == devices.end() ? nullptr : &*device;
}

}  // namespace

bool is_being_parked(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && running->parked.how == Parking::Begun;
}

Memory copy_of(Index& index, const Job& job) {
  Memory all{};
  for (const auto& there : index.placements_of(*attempt_of(job))) {
    all += index.ledger.copy_of(
        index.demand_of(job.spec), index.ledger.state(there.node), there.devices);
  }
  return all;
}

bool can_be_parked(Index& index, const Job& job, Memory host_memory_free) {
  const auto* running = std::get_if<Running>(&job.state);
  if (running == nullptr || running->move || job.spec.allocation) return false;
  if (!running->parked.refused.empty()) return false;
  const Device* device = only_device_of(index, running->attempt);
  if (device == nullptr || device->vendor != "nvidia" || device->uuid.empty()) return false;
  if (device->mig) return false;  // gflow-park knows GPUs alone
  return copy_of(index, job) <= host_memory_free;
}

}  // namespace gflow::engine
