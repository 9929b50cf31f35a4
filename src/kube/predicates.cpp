// SPDX-License-Identifier: Apache-2.0
#include "kube/predicates.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace gflow::kube {
namespace {

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

bool compares(const Match& match, const std::string& value) {
  const auto has = whole(value);
  const auto wants = match.values.size() == 1 ? whole(match.values.front()) : std::nullopt;
  if (!has || !wants) return false;
  return match.op == "Gt" ? *has > *wants : *has < *wants;
}

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

/// One without conditions is met by none.
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
  std::optional<std::string> value;
  if (match.is_field) {
    if (match.key == "metadata.name") value = node.name;
  } else if (const auto at = node.labels.find(match.key); at != node.labels.end()) {
    value = at->second;
  }
  const bool is_listed = value && std::ranges::find(match.values, *value) != match.values.end();
  if (match.op == "In") return is_listed;
  if (match.op == "NotIn") return !is_listed;
  if (match.op == "Exists") return value.has_value();
  if (match.op == "DoesNotExist") return !value.has_value();
  if (match.op == "Gt" || match.op == "Lt") return value && compares(match, *value);
  return false;
}

std::string refusal_of(const Node& node, const Wishes& wishes) {
  const Taint cordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  if (node.is_cordoned && !tolerates(wishes.tolerations, cordon)) {
    return "node(s) were unschedulable";
  }
  for (const Taint& taint : node.taints) {
    if (!keeps_away(taint) || tolerates(wishes.tolerations, taint)) continue;
    return "node(s) had untolerated taint(s)";
  }
  const bool is_wanted =
      has_labels(node, wishes.node_selector) &&
      (!wishes.affinity || std::ranges::any_of(*wishes.affinity, [&node](const Term& term) {
        return meets(node, term);
      }));
  return is_wanted ? "" : "node(s) didn't match Pod's node affinity/selector";
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
