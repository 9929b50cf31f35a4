// SPDX-License-Identifier: Apache-2.0
#include "kube/predicates.h"

#include <fmt/format.h>

#include <algorithm>

namespace gflow::kube {
namespace {

/// Taints that keep pods away; PreferNoSchedule only says what would be better.
bool keeps_away(const Taint& taint) {
  return taint.effect == "NoSchedule" || taint.effect == "NoExecute";
}

bool has_labels(const Node& node, const Words& selector) {
  return std::ranges::all_of(selector, [&node](const auto& wanted) {
    const auto at = node.labels.find(wanted.first);
    return at != node.labels.end() && at->second == wanted.second;
  });
}

bool meets(const Node& node, const Term& term) {
  return !term.empty() &&
         std::ranges::all_of(term, [&node](const Match& match) { return matches(match, node); });
}

}  // namespace

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations, [&taint](const Toleration& one) {
    if (!one.effect.empty() && one.effect != taint.effect) return false;
    if (!one.key.empty() && one.key != taint.key) return false;
    if (one.op == "Exists") return true;
    return (one.op.empty() || one.op == "Equal") && !one.key.empty() && one.value == taint.value;
  });
}

bool matches(const Match& match, const Node& node) {
  if (match.is_field) return matches(match, Words{{"metadata.name", node.name}});
  return matches(match, node.labels);
}

bool meets_any(const Node& node, const std::vector<Term>& terms) {
  return std::ranges::any_of(terms, [&node](const Term& term) { return meets(node, term); });
}

bool is_tolerated(const Node& node, const std::vector<Toleration>& tolerations) {
  return std::ranges::none_of(node.taints, [&tolerations](const Taint& taint) {
    return keeps_away(taint) && !tolerates(tolerations, taint);
  });
}

bool is_asked_for(const Node& node, const Wishes& wishes) {
  return has_labels(node, wishes.node_selector) &&
         (!wishes.affinity || meets_any(node, *wishes.affinity));
}

std::string refusal_of(const Node& node, const Wishes& wishes) {
  const Taint cordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  if (node.is_cordoned && !tolerates(wishes.tolerations, cordon)) {
    return "node(s) were unschedulable";
  }
  if (!is_tolerated(node, wishes.tolerations)) return "node(s) had untolerated taint(s)";
  return is_asked_for(node, wishes) ? "" : "node(s) didn't match Pod's node affinity/selector";
}

bool is_closed(const Node& node) {
  return node.is_cordoned || std::ranges::any_of(node.taints, [](const Taint& taint) {
           return taint.key.starts_with("node.kubernetes.io/") && keeps_away(taint);
         });
}

bool collide(const HostPort& a, const HostPort& b) {
  const auto every = [](const std::string& ip) {
    return ip.empty() || ip == "0.0.0.0" || ip == "::";
  };
  const auto protocol = [](const HostPort& port) {
    return port.protocol.empty() ? std::string("TCP") : port.protocol;
  };
  return a.port == b.port && protocol(a) == protocol(b) &&
         (a.ip == b.ip || every(a.ip) || every(b.ip));
}

}  // namespace gflow::kube
