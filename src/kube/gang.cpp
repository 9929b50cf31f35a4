// SPDX-License-Identifier: Apache-2.0
#include "kube/gang.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "kube/fields.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxSize = 1'000'000;

std::string named(const Json& words, std::string_view key) {
  return text(words, std::string(key).c_str());
}

/// What was asked for first decides, where a pod has several.
std::pair<GangSource, std::string> name_in(const Json& pod) {
  const Json& metadata = part(pod, "metadata");
  const Json& annotations = part(metadata, "annotations");
  std::array<std::pair<GangSource, std::string>, 5> said = {{
      {GangSource::Pods, named(annotations, kGangAnnotation)},
      {GangSource::Kubernetes, text(part(part(pod, "spec"), "schedulingGroup"), "podGroupName")},
      {GangSource::Kai, named(annotations, kKaiAnnotation)},
      {GangSource::Volcano, named(annotations, kVolcanoAnnotation)},
      {GangSource::Coscheduling, named(part(metadata, "labels"), kCoschedulingLabel)},
  }};
  const auto first =
      std::ranges::find_if(said, [](const auto& one) { return !one.second.empty(); });
  return first == said.end() ? said.front() : std::move(*first);
}

std::size_t size_from(int number) { return static_cast<std::size_t>(std::max(number, 1)); }

/// Where the group has parts, each of which has its own least: all of these together.
std::size_t least_of_parts(const Json& spec) {
  std::size_t least = 0;
  for (const Json& one : part(spec, "subGroups")) least += size_from(number(one, "minMember"));
  return std::max<std::size_t>(least, 1);
}

NearWish near_wish_in(const Json& spec, GangSource source) {
  NearWish wish;
  if (source == GangSource::Kubernetes) {
    const Json& topology = part(part(spec, "schedulingConstraints"), "topology");
    if (topology.is_array() && !topology.empty()) wish.key = text(topology.front(), "key");
  } else if (source == GangSource::Kai) {
    const Json& topology = part(spec, "topologyConstraint");
    wish.required = text(topology, "requiredTopologyLevel");
    wish.preferred = text(topology, "preferredTopologyLevel");
  } else if (const Json& network = part(spec, "networkTopology");
             source == GangSource::Volcano && network.is_object()) {
    wish.is_near = true;
    const bool is_hard = text(network, "mode") != "soft";
    if (is_hard) wish.highest_tier = std::max(number(network, "highestTierAllowed"), 0);
  }
  return wish;
}

/// Columns of what somebody wrote that are told.
constexpr std::size_t kMostOfSize = 64;

}  // namespace

std::optional<GangWish> gang_of(const Json& pod, std::string& mistake) {
  const Json& metadata = part(pod, "metadata");
  const std::string size = named(part(metadata, "annotations"), kGangSizeAnnotation);
  auto [source, name] = name_in(pod);
  if (name.empty()) {
    if (!size.empty()) {
      mistake = fmt::format("{} says how many start together, and {} is missing, which says who",
                            kGangSizeAnnotation,
                            kGangAnnotation);
    }
    return std::nullopt;
  }
  GangWish wish{{source, text(metadata, "namespace"), std::move(name)}, 0};
  if (source != GangSource::Pods) return wish;
  const auto number = parse_number(size);
  if (!number || *number == 0 || *number > kMaxSize) {
    mistake = size.empty() ? fmt::format(
                                 "{} says with whom it starts, and {} is missing, which "
                                 "says how many they are",
                                 kGangAnnotation,
                                 kGangSizeAnnotation)
                           : fmt::format("{} is '{}', and no number from 1 to {}",
                                         kGangSizeAnnotation,
                                         cut_end(printable(size), kMostOfSize),
                                         kMaxSize);
    return std::nullopt;
  }
  wish.size = *number;
  return wish;
}

PodGroup pod_group_of(const Json& object, GangSource source) {
  const Json& metadata = part(object, "metadata");
  const Json& spec = part(object, "spec");
  PodGroup group{text(metadata, "uid"),
                 {source, text(metadata, "namespace"), text(metadata, "name")},
                 size_from(number(spec, "minMember")),
                 near_wish_in(spec, source)};
  if (source == GangSource::Kubernetes) {
    group.least = size_from(number(part(part(spec, "schedulingPolicy"), "gang"), "minCount"));
  }
  if (source == GangSource::Kai && part(spec, "minMember").is_null()) {
    group.least = least_of_parts(spec);
  }
  return group;
}

}  // namespace gflow::kube
