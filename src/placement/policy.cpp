// SPDX-License-Identifier: Apache-2.0
#include "placement/policy.h"

#include <algorithm>
#include <cstddef>

namespace gflow::placement {
namespace {

std::int32_t free_for_fractions(const DeviceState& device, const SharingRules& rules) {
  if (!device.usable) return 0;
  if (device.users == 0) return device.free.parts;
  const bool joined =
      device.mode == GpuMode::Fraction || (rules.mix_modes && device.mode == GpuMode::TimeSlice);
  return joined && device.users < rules.max_jobs ? std::max(0, device.free.parts) : 0;
}

}  // namespace

NodeView view_of(const Ledger& ledger, NodeIndex node) {
  const NodeState& state = ledger.state(node);
  NodeView view;
  view.index = node;
  view.milli_cpus = ledger.node(node).milli_cpus;
  view.milli_cpus_free = state.milli_cpus_free;
  view.memory_free = state.memory_free;
  view.open = state.open;
  view.free.reserve(state.devices.size());
  view.model = state.devices.empty() ? -1 : state.devices.front().model;
  for (const DeviceState& device : state.devices) {
    const std::int32_t parts = free_for_fractions(device, ledger.rules());
    view.free.push_back(parts);
    view.free_parts += parts;
    view.max_free = std::max(view.max_free, parts);
    if (device.usable && device.users == 0) ++view.idle;
    if (device.model != view.model) view.model = -1;
    if (device.time_sliced > 0) view.time_sliced = true;
    if (device.suspended > 0 || device.lent > 0 || device.kept_for != kForAnyDemand) {
      view.has_suspended = true;
    }
    if (device.memory != Memory{}) view.knows_memory = true;
  }
  return view;
}

std::vector<int> least_free(const Question& question) {
  std::vector<int> devices;
  for (std::size_t i = 0; i < question.fits.size(); ++i) {
    if (question.fits[i] != 0) devices.push_back(static_cast<int>(i));
  }
  const std::vector<std::int32_t>& free = question.node.free;
  std::ranges::stable_sort(
      devices, std::less{}, [&free](int i) { return free[static_cast<std::size_t>(i)]; });
  devices.resize(static_cast<std::size_t>(question.demand.gpus));
  std::ranges::sort(devices);
  return devices;
}

std::vector<std::int32_t> free_after(const Question& question, std::span<const int> devices) {
  std::vector<std::int32_t> free = question.node.free;
  for (const int i : devices) {
    std::int32_t& parts = free[static_cast<std::size_t>(i)];
    parts = question.demand.mode == GpuMode::Fraction
                ? std::max(0, parts - question.demand.share.parts)
                : 0;
  }
  return free;
}

std::vector<int> Policy::devices(const Question& question) const { return least_free(question); }

std::vector<Term> Policy::explain(const Question& question) const {
  return {{.name = "score", .weight = 1, .value = static_cast<double>(score(question))}};
}

}  // namespace gflow::placement
