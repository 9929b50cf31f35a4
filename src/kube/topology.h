// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/gang.h"

/// How the network of a cluster is divided, and how near each other pods of a gang are to be.
namespace gflow::kube {

/// In the ConfigMap of the limits: labels of nodes, the widest first, with commas between.
constexpr std::string_view kLevelsKey = "topology_levels";
/// Annotations of pods: a level, by its label or what people call it.
constexpr std::string_view kRequiredAnnotation = "gflow/topology-required";
constexpr std::string_view kPreferredAnnotation = "gflow/topology-preferred";

/// Labels of nodes, the widest first.
using Levels = std::vector<std::string>;
struct LevelsRead {
  Levels levels;
  std::string mistake;  ///< a sentence; "" if all of it is taken, else the levels are those before
  [[nodiscard]] bool are_unread() const { return levels.empty() && !mistake.empty(); }
};
[[nodiscard]] LevelsRead levels_of(const nlohmann::json& config_map, const Levels& before);
/// For a log: "block, rack"; "none".
[[nodiscard]] std::string to_text(const Levels& levels);
/// What people call it: "rack" of cloud.provider.com/topology-rack.
[[nodiscard]] std::string level_word(std::string_view label);

/// What a pod, or its PodGroup, says of how near its gang is to be.
struct NearWish {
  std::string required;   ///< a level, as somebody wrote it; "": none
  std::string preferred;  ///< the same
  /// By an annotation of gflow: it has to be a level of the cluster. What was written for another
  /// scheduler says nothing in a cluster without levels.
  bool is_own = false;
  std::string key;  ///< a label in one value of which all have to be, level or not; "": none
  /// All in one domain of the level that is so many from the narrowest one that is no node, the
  /// narrowest is 1; 0: none.
  int highest_tier = 0;
  bool is_near = false;  ///< as near as there is room

  friend auto operator<=>(const NearWish&, const NearWish&) = default;
};
/// Of a pod's annotations.
[[nodiscard]] NearWish near_wish_of(const nlohmann::json& metadata);

/// How near the pods of a gang go.
struct NearGang {
  engine::Nearness near;
  std::string trouble;  ///< a sentence: what of it is no level; "" if all are

  friend bool operator==(const NearGang&, const NearGang&) = default;
};
/// Of what its pods and its PodGroup say: the narrowest level of all. `shared`: labels in one value
/// of which they are by their pod affinity; tried in one domain of each first. `source`: what says
/// the levels, for people; `are_unread`: it cannot be read, and nobody who has to be in one domain
/// of them starts.
[[nodiscard]] NearGang near_gang_of(const Levels& levels,
                                    const std::map<NearWish, std::size_t>& wishes,
                                    const std::vector<std::string>& shared,
                                    const std::string& source,
                                    bool are_unread = false);

}  // namespace gflow::kube
