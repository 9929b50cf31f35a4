// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "core/text_limits.h"
#include "engine/index.h"

namespace gflow::engine {
namespace {

/// Nodes there are; what was removed is gone, whatever is held there still.
std::vector<std::string> names_of_nodes(const Index& index) {
  std::vector<std::string> names;
  for (const auto& [name, record] : index.nodes) {
    if (!record.removed) names.push_back(name);
  }
  return names;
}

/// "GPU 3", "GPU 3 of node n1", "node n1".
std::string name_of(const Index& index, const Drain& drain) {
  const std::vector<std::string> names = names_of_nodes(index);
  const bool is_only = names.empty() || (names.size() == 1 && names.front() == drain.node);
  const std::string node = is_only ? tr("this node") : tr_format("node {}", printable(drain.node));
  if (!drain.gpu) return node;
  return is_only ? tr_format("GPU {}", *drain.gpu) : tr_format("GPU {} of {}", *drain.gpu, node);
}

/// With the node it is on: the only one there is where none is named.
Result<Drain> located(const Index& index, Drain drain) {
  if (!drain.node.empty()) return drain;
  const std::vector<std::string> names = names_of_nodes(index);
  if (names.size() > 1) {
    return fail(Code::Usage, tr_format("on which node? The nodes are {}", join(names, ", ")));
  }
  if (!names.empty()) drain.node = names.front();
  return drain;
}

/// Null if the node is not there.
const Machine* machine_of(const Index& index, const std::string& name) {
  const auto node = index.nodes.find(name);
  return node == index.nodes.end() || node->second.removed ? nullptr : &node->second.machine;
}

const Device* device_at(const Machine* machine, std::optional<int> gpu) {
  if (machine == nullptr || !gpu) return nullptr;
  const auto at = std::ranges::find(machine->devices, *gpu, &Device::index);
  return at == machine->devices.end() ? nullptr : &*at;
}

/// Of a device that is there; what has its index and is not there any more is another one.
std::vector<Drain>::iterator find_of(std::vector<Drain>& drains,
                                     const std::string& node,
                                     const Device& device) {
  const Drain* found = drain_of_device(drains, node, device);
  return found == nullptr ? drains.end() : drains.begin() + (found - drains.data());
}

}  // namespace

/// A drain outlives its node and its device: what comes back is drained still.
Result<void> Index::drain(const event::Drain& event) {
  Drain what = GF_TRY(located(*this, event.what));
  const std::string name = name_of(*this, what);
  GF_CHECK(may_drain(event.by, name));
  if (what.reason.size() > kMaxReason) {
    return fail(
        Code::Usage,
        tr_format("the reason has {} bytes; the maximum is {}", what.reason.size(), kMaxReason));
  }
  const Machine* machine = machine_of(*this, what.node);
  const Device* device = device_at(machine, what.gpu);
  auto at = device == nullptr ? drains.end() : find_of(drains, what.node, *device);
  if (at == drains.end() && (device == nullptr || event.resume)) {
    at = std::ranges::find_if(drains, [&what](const Drain& drain) {
      return drain.node == what.node && drain.gpu == what.gpu;
    });
  }
  if (at == drains.end() && (machine == nullptr || (what.gpu && device == nullptr))) {
    return fail(Code::NotFound, tr_format("there is no {}", name));
  }
  if (device != nullptr) what.uuid = device->uuid;
  if (event.resume) {
    if (at == drains.end()) return fail(Code::WrongState, tr_format("{} is not drained", name));
    drains.erase(at);
  } else if (at != drains.end()) {
    if (device == nullptr) what.uuid = at->uuid;  // it is away, and known again by that
    *at = what;
  } else {
    drains.push_back(what);
  }
  if (const auto node = nodes.find(what.node); node != nodes.end()) put_node(node->second);
  return {};
}

bool Index::find_drained(const Machine& machine) {
  bool changed = false;
  for (Drain& drain : drains) {
    if (drain.node != machine.name || !drain.gpu) continue;
    const auto at = drain.uuid.empty()
                        ? std::ranges::find(machine.devices, *drain.gpu, &Device::index)
                        : std::ranges::find(machine.devices, drain.uuid, &Device::uuid);
    if (at == machine.devices.end()) continue;
    changed = changed || drain.gpu != at->index || drain.uuid != at->uuid;
    drain.gpu = at->index;
    drain.uuid = at->uuid;
  }
  return changed;
}

}  // namespace gflow::engine
