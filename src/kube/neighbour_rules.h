// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kube/labels.h"

/// What a pod demands of the pods about it. Nodes are one domain where they have one value of a
/// label, the topology key.
namespace gflow::kube {

/// Pods, and how near is near.
struct NeighbourTerm {
  std::string topology_key;
  Selector pods;
  std::vector<std::string> name_spaces;  ///< in order
  Selector name_space_selector;          ///< those that it selects, too

  friend auto operator<=>(const NeighbourTerm&, const NeighbourTerm&) = default;
};

/// No domain is to have so many more of these pods than the one that has the fewest.
struct Spread {
  std::string topology_key;
  int max_skew = 1;
  int min_domains = 1;  ///< where there are fewer, the fewest are none
  Selector pods;        ///< of the pod's namespace
  std::string name_space;
  bool counts_itself = false;    ///< the pod is one of them
  bool honours_affinity = true;  ///< domains are those of the nodes that the pod asks for
  bool honours_taints = false;   ///< and of those whose taints it tolerates

  friend auto operator<=>(const Spread&, const Spread&) = default;
};

/// All of them have to hold; preferences are none.
struct NeighbourRules {
  std::vector<NeighbourTerm> near;   ///< there are pods in the domain that are all of these
  std::vector<NeighbourTerm> apart;  ///< there are none of these
  std::vector<Spread> spread;

  [[nodiscard]] bool empty() const { return near.empty() && apart.empty() && spread.empty(); }
  friend auto operator<=>(const NeighbourRules&, const NeighbourRules&) = default;
};

/// Of a pod of this namespace with these labels.
[[nodiscard]] NeighbourRules neighbour_rules_of(const nlohmann::json& spec,
                                                const std::string& name_space,
                                                const Words& labels);

}  // namespace gflow::kube
