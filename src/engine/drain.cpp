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

bool is_there(const Index& index, const Drain& drain) {
  const auto node = index.nodes.find(drain.node);
  if (node == index.nodes.end() || node->second.removed) return false;
  const auto& devices = node->second.machine.devices;
  return !drain.gpu || std::ranges::find(devices, *drain.gpu, &Device::index) != devices.end();
}

}  // namespace

/// A drain outlives its node and its device: what comes back is drained still.
Result<void> Index::drain(const event::Drain& event) {
  const Drain what = GF_TRY(located(*this, event.what));
  const std::string name = name_of(*this, what);
  GF_CHECK(may_drain(event.by, name));
  if (what.reason.size() > kMaxReason) {
    return fail(
        Code::Usage,
        tr_format("the reason has {} bytes; the maximum is {}", what.reason.size(), kMaxReason));
  }
  const auto at = std::ranges::find_if(drains, [&what](const Drain& drain) {
    return drain.node == what.node && drain.gpu == what.gpu;
  });
  if (at == drains.end() && !is_there(*this, what)) {
    return fail(Code::NotFound, tr_format("there is no {}", name));
  }
  if (event.resume) {
    if (at == drains.end()) return fail(Code::WrongState, tr_format("{} is not drained", name));
    drains.erase(at);
  } else if (at != drains.end()) {
    *at = what;
  } else {
    drains.push_back(what);
  }
  if (const auto node = nodes.find(what.node); node != nodes.end()) put_node(node->second);
  return {};
}

}  // namespace gflow::engine
