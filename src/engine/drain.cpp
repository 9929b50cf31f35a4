// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "engine/index.h"

namespace gflow::engine {
namespace {

std::string name_of(const Drain& drain) {
  const std::string node =
      drain.node.empty() ? "this node" : fmt::format("node {}", printable(drain.node));
  if (!drain.gpu) return node;
  return drain.node.empty() ? fmt::format("GPU {}", *drain.gpu)
                            : fmt::format("GPU {} of {}", *drain.gpu, node);
}

}  // namespace

bool Index::drained(const std::string& node) const {
  return std::ranges::any_of(
      drains, [&node](const Drain& drain) { return drain.node == node && !drain.gpu; });
}

Result<void> Index::drain(const event::Drain& event) {
  const Drain& what = event.what;
  GF_CHECK(may_drain(event.by, name_of(what)));
  const auto node = ledger.find(what.node);
  const auto gpus = node ? ledger.node(*node).devices.size() : 0;
  if (!node || (what.gpu && (*what.gpu < 0 || static_cast<std::size_t>(*what.gpu) >= gpus))) {
    return fail(Code::NotFound, fmt::format("there is no {}", name_of(what)));
  }
  if (what.gpu && !what.node.empty()) {
    return fail(Code::WrongState,
                fmt::format("GPUs of other nodes are drained there; {} can be drained as a whole",
                            printable(what.node)));
  }
  const auto at = std::ranges::find_if(drains, [&what](const Drain& drain) {
    return drain.node == what.node && drain.gpu == what.gpu;
  });
  if (event.resume) {
    if (at == drains.end()) {
      return fail(Code::WrongState, fmt::format("{} is not drained", name_of(what)));
    }
    drains.erase(at);
  } else if (at != drains.end()) {
    *at = what;
  } else {
    drains.push_back(what);
  }
  put_drained(*node);
  return {};
}

/// Other nodes than the daemon's say themselves which of their devices are usable; a drained one is
/// taken out on top.
void Index::put_drained(placement::NodeIndex index) {
  const std::string name = ledger.node(index).name;
  if (name.empty()) return put_machine();
  placement::Node node = ledger.node(index);
  node.drained = drained(name);
  put_node(std::move(node));
}

}  // namespace gflow::engine
