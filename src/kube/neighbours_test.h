// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kube/objects.h"
#include "kube/predicates.h"

/// For tests: what Kubernetes' documents say of pods and their neighbours, from all there is and
/// from nothing else.
namespace gflow::kube::oracle {

struct Placed {
  const Pod* pod;
  const Node* node;
};

struct There {
  std::vector<const Node*> nodes;
  std::vector<Placed> pods;  ///< on nodes that are there
  std::map<std::string, Words> name_spaces;
};

inline bool share(const Node& a, const Node& b, const std::string& key) {
  return a.labels.contains(key) && b.labels.contains(key) && a.labels.at(key) == b.labels.at(key);
}

inline bool is_one(const Pod& pod, const NeighbourTerm& term, const There& there) {
  bool is_in = std::ranges::find(term.name_spaces, pod.name_space) != term.name_spaces.end();
  const auto labels = there.name_spaces.find(pod.name_space);
  is_in = is_in || selects(term.name_space_selector,
                           labels == there.name_spaces.end() ? Words{} : labels->second);
  return is_in && selects(term.pods, pod.labels);
}

inline bool is_all(const Pod& pod, const std::vector<NeighbourTerm>& terms, const There& there) {
  return std::ranges::all_of(terms,
                             [&](const NeighbourTerm& term) { return is_one(pod, term, there); });
}

inline std::string refusal_of_near(const Pod& pod, const Node& node, const There& there) {
  bool has_all = true;
  bool is_first = is_all(pod, pod.rules.near, there);
  for (const NeighbourTerm& term : pod.rules.near) {
    if (!node.labels.contains(term.topology_key)) return "near";
    bool has_one = false;
    for (const Placed& one : there.pods) {
      if (!is_all(*one.pod, pod.rules.near, there)) continue;
      has_one = has_one || share(node, *one.node, term.topology_key);
      is_first = is_first && !one.node->labels.contains(term.topology_key);
    }
    has_all = has_all && has_one;
  }
  return has_all || is_first ? "" : "near";
}

inline std::string refusal_of_apart(const Pod& pod, const Node& node, const There& there) {
  for (const Placed& one : there.pods) {
    for (const NeighbourTerm& term : pod.rules.apart) {
      const bool is_too_near = share(node, *one.node, term.topology_key);
      if (is_too_near && is_one(*one.pod, term, there)) return "apart";
    }
  }
  for (const Placed& one : there.pods) {
    for (const NeighbourTerm& term : one.pod->rules.apart) {
      const bool is_too_near = share(node, *one.node, term.topology_key);
      if (is_too_near && is_one(pod, term, there)) return "others";
    }
  }
  return {};
}

inline bool is_eligible(const Pod& pod, const Node& node, const Spread& rule) {
  for (const Spread& one : pod.rules.spread) {
    if (!node.labels.contains(one.topology_key)) return false;
  }
  if (rule.honours_affinity && !is_asked_for(node, pod.wishes)) return false;
  return !rule.honours_taints || is_tolerated(node, pod.wishes.tolerations);
}

inline std::string refusal_of_spread(const Pod& pod, const Node& node, const There& there) {
  for (const Spread& rule : pod.rules.spread) {
    const auto domain = node.labels.find(rule.topology_key);
    if (domain == node.labels.end()) return "key";
    std::map<std::string, std::int64_t> pods;
    for (const Node* one : there.nodes) {
      if (is_eligible(pod, *one, rule)) pods[one->labels.at(rule.topology_key)] += 0;
    }
    const bool selects_all = rule.pods && rule.pods->empty();
    for (const Placed& one : there.pods) {
      if (!is_eligible(pod, *one.node, rule) || one.pod->is_deleted || selects_all) continue;
      if (one.pod->name_space != pod.name_space || !selects(rule.pods, one.pod->labels)) continue;
      ++pods[one.node->labels.at(rule.topology_key)];
    }
    std::int64_t fewest = pods.empty() ? 0 : INT64_MAX;
    for (const auto& [name, count] : pods) fewest = std::min(fewest, count);
    if (static_cast<int>(pods.size()) < rule.min_domains) fewest = 0;
    const int own = selects(rule.pods, pod.labels) ? 1 : 0;
    if (pods[domain->second] + own - fewest > rule.max_skew) return "spread";
  }
  return {};
}

/// "" if the pod may go to the node, as far as others go.
inline std::string refusal(const Pod& pod, const Node& node, const There& there) {
  for (const auto rule : {refusal_of_spread, refusal_of_near, refusal_of_apart}) {
    if (std::string found = rule(pod, node, there); !found.empty()) return found;
  }
  return {};
}

}  // namespace gflow::kube::oracle
