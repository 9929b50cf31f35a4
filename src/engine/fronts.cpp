// SPDX-License-Identifier: Apache-2.0
#include "engine/fronts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace gflow::engine {

using placement::DeviceState;
using placement::Ledger;
using placement::NodeIndex;
using placement::NodeState;

namespace {

/// Whether the device, as it is now, may take something it could not take before.
bool has_more(const DeviceState& now, const DeviceState& before) {
  const bool same = now.model == before.model && now.memory == before.memory;
  // Nobody's mode keeps others from an idle device.
  const bool joined = now.mode == before.mode || before.users == 0;
  return !same || !joined || now.kept_for != before.kept_for || (now.usable && !before.usable) ||
         now.free > before.free || now.memory_free > before.memory_free ||
         now.users < before.users || now.suspended < before.suspended || now.lent < before.lent ||
         now.withheld < before.withheld || now.time_sliced < before.time_sliced;
}

bool has_more(const NodeState& now, const NodeState& before) {
  if (now.open && !before.open) return true;
  if (now.milli_cpus_free > before.milli_cpus_free || now.memory_free > before.memory_free ||
      now.devices.size() != before.devices.size()) {
    return true;
  }
  for (std::size_t i = 0; i < now.devices.size(); ++i) {
    if (has_more(now.devices[i], before.devices[i])) return true;
  }
  return false;
}

}  // namespace

void Fronts::add(Line& line,
                 const Shape& shape,
                 const Line* sibling,
                 const std::chrono::seconds* penalty) {
  ShapeNumber number = 0;
  if (sibling != nullptr) {
    number = all_[sibling->front].shape;
  } else if (!vacant_.empty()) {
    number = vacant_.back();
    vacant_.pop_back();
  } else {
    number = static_cast<ShapeNumber>(shapes_.size());
    shapes_.emplace_back();
  }
  Shaped& shaped = shapes_[number];
  if (shaped.lines++ == 0) {
    shaped.shape = shape;
    shaped.full = false;
    ++open_;
    if (shape.gang != kNoGang) gangs_[shape.gang].push_back(number);
  }
  line.front = static_cast<std::uint32_t>(all_.size());
  all_.push_back({.first = line.jobs.front(),
                  .allowance = line.allowance,
                  .penalty = penalty,
                  .line = &line,
                  .shape = number,
                  .stoppable = line.contender.stoppable});
}

void Fronts::remove(const Line& line) {
  const std::uint32_t at = line.front;
  Shaped& shaped = shapes_[all_[at].shape];
  if (--shaped.lines == 0) {
    if (!shaped.full) --open_;
    if (shaped.shape.gang != kNoGang) forget(shaped.shape.gang, all_[at].shape);
    vacant_.push_back(all_[at].shape);
  }
  all_[at] = all_.back();
  all_[at].line->front = at;
  all_.pop_back();
}

void Fronts::set_full(ShapeNumber number) {
  Shaped& shaped = shapes_[number];
  if (std::exchange(shaped.full, true)) return;
  --open_;
}

void Fronts::forget(GangNumber gang, ShapeNumber number) {
  const auto at = gangs_.find(gang);
  std::erase(at->second, number);
  if (at->second.empty()) gangs_.erase(at);
}

void Fronts::set_gang_full(GangNumber gang) {
  const auto at = gangs_.find(gang);
  if (at == gangs_.end()) return;
  for (const ShapeNumber number : at->second) set_full(number);
}

void Fronts::open_gang(GangNumber gang) {
  const auto at = gangs_.find(gang);
  if (at == gangs_.end()) return;
  for (const ShapeNumber number : at->second) {
    if (std::exchange(shapes_[number].full, false)) ++open_;
  }
}

void Fronts::open_all() {
  for (Shaped& shaped : shapes_) {
    if (shaped.lines > 0 && std::exchange(shaped.full, false)) ++open_;
  }
}

std::vector<NodeIndex> Fronts::nodes_with_more(const Ledger& ledger) const {
  std::vector<NodeIndex> found;
  const auto look_at = [&](NodeIndex node) {
    const auto place = static_cast<std::size_t>(node);
    const bool more = place >= left_.size() || changed_.contains(node) ||
                      has_more(ledger.state(node), left_[place]);
    if (more && std::ranges::find(found, node) == found.end()) found.push_back(node);
  };
  const auto changed = ledger.changed_since(version_);
  if (changed && changed->size() < static_cast<std::size_t>(ledger.size())) {
    for (const NodeIndex node : *changed) look_at(node);
  } else {
    for (NodeIndex node = 0; node < ledger.size(); ++node) look_at(node);
  }
  return found;
}

void Fronts::find_room(const Ledger& ledger) {
  if (version_ == ledger.version() && changed_.empty()) return;
  const std::vector<NodeIndex> nodes = nodes_with_more(ledger);
  if (nodes.empty()) return;
  for (Shaped& shaped : shapes_) {
    if (shaped.lines == 0 || !shaped.full) continue;
    const auto fits = [&](NodeIndex node) { return ledger.fits(shaped.shape.demand, node); };
    if (std::ranges::none_of(nodes, fits)) continue;
    shaped.full = false;
    ++open_;
    if (shaped.shape.gang != kNoGang) open_gang(shaped.shape.gang);
  }
}

void Fronts::pass_ended(const Ledger& ledger) {
  const auto changed = ledger.changed_since(version_);
  const auto size = static_cast<std::size_t>(ledger.size());
  if (changed && left_.size() == size) {
    for (const NodeIndex node : *changed) {
      left_[static_cast<std::size_t>(node)] = ledger.state(node);
    }
  } else {
    left_.clear();
    for (NodeIndex node = 0; node < ledger.size(); ++node) left_.push_back(ledger.state(node));
  }
  version_ = ledger.version();
  changed_.clear();
}

}  // namespace gflow::engine
