// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "kube/topology.h"

/// Pods that start together: what they and their PodGroups say of it.
namespace gflow::kube {

/// Where it is said how many of a gang start together.
enum class GangSource {
  Pods,          ///< in their annotations
  Kubernetes,    ///< PodGroup of scheduling.k8s.io (KEP-4671, KEP-5832)
  Kai,           ///< that of KAI
  Volcano,       ///< that of Volcano
  Coscheduling,  ///< that of the coscheduling plugin of scheduler-plugins (KEP-42)
};
/// The API of the PodGroups of each source; "" of pods.
constexpr std::array<std::string_view, 5> kGangApis = {"",
                                                       "scheduling.k8s.io/v1alpha2",
                                                       "scheduling.run.ai/v2alpha2",
                                                       "scheduling.volcano.sh/v1beta1",
                                                       "scheduling.x-k8s.io/v1alpha1"};
static_assert(kGangApis.size() == static_cast<std::size_t>(GangSource::Coscheduling) + 1);
[[nodiscard]] constexpr std::string_view api_of(GangSource source) {
  return kGangApis.at(static_cast<std::size_t>(source));
}

/// Names with which a pod says which gang it is of.
constexpr std::string_view kGangAnnotation = "gflow/gang";
constexpr std::string_view kGangSizeAnnotation = "gflow/gang-size";
constexpr std::string_view kKaiAnnotation = "pod-group-name";
constexpr std::string_view kVolcanoAnnotation = "scheduling.k8s.io/group-name";
constexpr std::string_view kCoschedulingLabel = "scheduling.x-k8s.io/pod-group";

/// Which gang, in the namespace of its pods.
struct GangName {
  GangSource source = GangSource::Pods;
  std::string name_space;
  std::string name;

  friend auto operator<=>(const GangName&, const GangName&) = default;
};

/// What a pod says of its gang.
struct GangWish {
  GangName name;
  std::size_t size = 0;  ///< of which its pods say it; 0: a PodGroup does

  friend auto operator<=>(const GangWish&, const GangWish&) = default;
};

/// How many of a gang start together, and how near each other, as a PodGroup says.
struct PodGroup {
  std::string uid;
  GangName name;
  std::size_t least = 1;
  NearWish near{};

  friend bool operator==(const PodGroup&, const PodGroup&) = default;
};

/// Of a pod; nothing if it is in none. What of it cannot be read is said in `mistake`.
[[nodiscard]] std::optional<GangWish> gang_of(const nlohmann::json& pod, std::string& mistake);
[[nodiscard]] PodGroup pod_group_of(const nlohmann::json& object, GangSource source);

}  // namespace gflow::kube
