// SPDX-License-Identifier: Apache-2.0
#include "core/node_change.h"

#include <algorithm>
#include <utility>

namespace gflow {
namespace {

using What = NodeChange::What;

/// A GPU is known again by its UUID, whatever its index is by then.
bool are_of_one(const Drain& a, const Drain& b) {
  if (a.is_of_node() || b.is_of_node()) return a.is_of_node() == b.is_of_node();
  return a.uuid.empty() || b.uuid.empty() ? a.gpu == b.gpu : a.uuid == b.uuid;
}

/// Those of the first that are of nothing in the second.
std::vector<Drain> without(const std::vector<Drain>& some, const std::vector<Drain>& others) {
  std::vector<Drain> left;
  std::ranges::copy_if(some, std::back_inserter(left), [&others](const Drain& drain) {
    return std::ranges::none_of(others,
                                [&drain](const Drain& other) { return are_of_one(drain, other); });
  });
  return left;
}

void compare(const std::string& node,
             const NodeStanding& before,
             const NodeStanding& now,
             std::vector<NodeChange>& changes) {
  if (now.unreachable && !before.unreachable) {
    changes.push_back({node, What::Unreachable, {}, *now.unreachable});
  }
  if (before.unreachable && !now.unreachable) changes.push_back({node, What::Answers});
  for (const Drain& drain : without(now.drains, before.drains)) {
    changes.push_back({node, What::Drained, drain.gpu, drain.reason, drain.by, drain.uuid});
  }
  for (const Drain& drain : without(before.drains, now.drains)) {
    changes.push_back({node, What::Resumed, drain.gpu, "", "", drain.uuid});
  }
  if (now.unhealthy && !before.unhealthy) {
    changes.push_back({node, What::Unhealthy, {}, *now.unhealthy});
  }
  if (before.unhealthy && !now.unhealthy) changes.push_back({node, What::Healthy});
}

}  // namespace

std::vector<NodeChange> NodeChanges::see(NodeStandings now) {
  std::vector<NodeChange> changes;
  if (!told_) {
    told_ = std::move(now);
    return changes;
  }
  for (const auto& [name, before] : *told_) {
    if (!now.contains(name)) changes.push_back({name, What::Gone});
  }
  for (const auto& [name, standing] : now) {
    const auto before = told_->find(name);
    if (before == told_->end()) changes.push_back({name, What::Appeared});
    // What appears may be drained, or not answer, from the start.
    compare(name, before == told_->end() ? NodeStanding{} : before->second, standing, changes);
  }
  told_ = std::move(now);
  return changes;
}

}  // namespace gflow
