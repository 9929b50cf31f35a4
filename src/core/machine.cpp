// SPDX-License-Identifier: Apache-2.0
#include "core/machine.h"

#include <algorithm>

namespace gflow {
namespace {

const Drain* find_drain(const std::vector<Drain>& drains,
                        std::string_view node,
                        std::optional<int> gpu) {
  const auto at = std::ranges::find_if(
      drains, [&](const Drain& drain) { return drain.node == node && drain.gpu == gpu; });
  return at == drains.end() ? nullptr : &*at;
}

}  // namespace

const Drain* drain_of_node(const std::vector<Drain>& drains, std::string_view node) {
  return find_drain(drains, node, std::nullopt);
}

const Drain* drain_of_device(const std::vector<Drain>& drains, std::string_view node, int gpu) {
  return find_drain(drains, node, gpu);
}

DeviceBar bar_of(const Device& device, const Drain* drain, OtherUse use) {
  if (!device.usable) return DeviceBar::Broken;
  if (drain != nullptr) return DeviceBar::Drained;
  if (!device.processes.empty() && use == OtherUse::Barred) return DeviceBar::InUse;
  return DeviceBar::None;
}

}  // namespace gflow
