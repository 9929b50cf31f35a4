// SPDX-License-Identifier: Apache-2.0
#include "kube/topology.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/gang.h"
#include "kube/limits.h"
#include "kube/objects.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

const Levels kLevels = {"cloud.provider.com/topology-block",
                        "cloud.provider.com/topology-rack",
                        "kubernetes.io/hostname"};

Json config_map(const std::string& levels) {
  return {{"metadata", {{"uid", "u"}}}, {"data", {{"topology_levels", levels}}}};
}

TEST(LevelsOf, AreLabelsTheWidestFirst) {
  EXPECT_EQ(levels_of(config_map("cloud.provider.com/topology-block, "
                                 "cloud.provider.com/topology-rack,kubernetes.io/hostname"),
                      {})
                .levels,
            kLevels);
  EXPECT_EQ(levels_of(config_map(""), kLevels).levels, Levels{});
  EXPECT_EQ(levels_of(config_map(" "), kLevels).levels, Levels{});
  EXPECT_EQ(levels_of(Json::object(), kLevels).levels, Levels{});
}

TEST(LevelsOf, StayAsTheyWereWhereTheyCannotBeRead) {
  for (const char* wrong :
       {"rack,", ",rack", "rack,rack", "a rack", "rack,\x01", "a,b,c,d,e,f,g,h,i"}) {
    const LevelsRead read = levels_of(config_map(wrong), {"block"});
    EXPECT_EQ(read.levels, Levels{"block"}) << wrong;
    EXPECT_NE(read.mistake.find("topology_levels"), std::string::npos) << wrong;
  }
}

TEST(LevelsOf, StandBesideLimits) {
  Json both = config_map("block,rack");
  both["data"]["max_gpus_per_namespace"] = "4";
  const Limits limits = limits_of(both, {}, {});
  EXPECT_EQ(limits.levels, (Levels{"block", "rack"}));
  EXPECT_EQ(limits.quota.per_user, 4);
  EXPECT_TRUE(limits.mistakes.empty());
}

TEST(LevelWord, IsWhatPeopleCallIt) {
  EXPECT_EQ(level_word("cloud.provider.com/topology-rack"), "rack");
  EXPECT_EQ(level_word("topology.kubernetes.io/zone"), "zone");
  EXPECT_EQ(level_word("topology-"), "topology-");
  EXPECT_EQ(level_word("rack"), "rack");
}

Json pod_noting(const Json& annotations) {
  return {{"metadata",
           {{"uid", "u"}, {"name", "p"}, {"namespace", "default"}, {"annotations", annotations}}},
          {"spec", Json::object()}};
}

engine::Nearness nearness_in(const std::map<NearWish, std::size_t>& wishes,
                             const std::vector<std::string>& shared = {},
                             const Levels& levels = kLevels) {
  const NearGang gang = near_gang_of(levels, wishes, shared, "ConfigMap gflow-kube-limits");
  EXPECT_EQ(gang.trouble, "");
  return gang.near;
}

engine::Nearness nearness_in(const Json& annotations) {
  return nearness_in({{near_wish_of(pod_noting(annotations)["metadata"]), 1}});
}

TEST(NearWishOf, IsReadAsEverySchedulerWritesIt) {
  struct Row {
    Json annotations;
    std::size_t required;
    std::size_t preferred;
  };
  const std::string rack = "cloud.provider.com/topology-rack";
  const std::vector<Row> rows = {
      {Json::object(), 0, 0},
      {{{"gflow/topology-required", rack}}, 2, 0},
      {{{"gflow/topology-required", "rack"}}, 2, 0},
      {{{"gflow/topology-required", "topology-rack"}}, 2, 0},
      {{{"gflow/topology-preferred", "hostname"}}, 0, 3},
      {{{"gflow/topology-required", "block"}, {"gflow/topology-preferred", "rack"}}, 1, 2},
      {{{"kueue.x-k8s.io/podset-required-topology", rack}}, 2, 0},
      {{{"kueue.x-k8s.io/podset-preferred-topology", rack}}, 0, 2},
      {{{"kueue.x-k8s.io/podset-unconstrained-topology", "true"}}, 0, 0},
      {{{"kai.scheduler/topology", "net"},
        {"kai.scheduler/topology-required-placement", "block"},
        {"kai.scheduler/topology-preferred-placement", "rack"}},
       1,
       2},
      {{{"gflow/topology-preferred", "rack"}, {"kueue.x-k8s.io/podset-required-topology", rack}},
       0,
       2},
  };
  for (const Row& row : rows) {
    const engine::Nearness read = nearness_in(row.annotations);
    EXPECT_EQ(read.required, row.required) << row.annotations;
    EXPECT_EQ(read.preferred, row.preferred) << row.annotations;
    EXPECT_EQ(read.levels, kLevels);
  }
}

/// An annotation may be as long as 256 KiB.
TEST(NearWishOf, KeepsNoMoreThanALabelHas) {
  for (const char* name : {"gflow/topology-required", "kueue.x-k8s.io/podset-required-topology"}) {
    const Json annotations = {{name, std::string(200'000, 'x')}};
    EXPECT_EQ(near_wish_of(pod_noting(annotations)["metadata"]).required, std::string(318, 'x'));
  }
}

TEST(NearWishOf, IsReadOfPodGroups) {
  struct Row {
    GangSource source;
    Json spec;
    std::size_t required;
    std::size_t preferred;
  };
  const std::vector<Row> rows = {
      {GangSource::Kai, {{"topologyConstraint", {{"requiredTopologyLevel", "rack"}}}}, 2, 0},
      {GangSource::Kai, {{"topologyConstraint", {{"preferredTopologyLevel", "rack"}}}}, 0, 2},
      {GangSource::Volcano, {{"networkTopology", {{"highestTierAllowed", 1}}}}, 2, 2},
      {GangSource::Volcano,
       {{"networkTopology", {{"mode", "hard"}, {"highestTierAllowed", 2}}}},
       1,
       2},
      {GangSource::Volcano,
       {{"networkTopology", {{"mode", "hard"}, {"highestTierAllowed", 9}}}},
       0,
       2},
      {GangSource::Volcano,
       {{"networkTopology", {{"mode", "soft"}, {"highestTierAllowed", 1}}}},
       0,
       2},
      {GangSource::Volcano, Json::object(), 0, 0},
      {GangSource::Kubernetes,
       {{"schedulingConstraints", {{"topology", {{{"key", "cloud.provider.com/topology-rack"}}}}}}},
       2,
       0},
      {GangSource::Coscheduling, {{"networkTopology", {{"highestTierAllowed", 1}}}}, 0, 0},
  };
  for (const Row& row : rows) {
    const PodGroup group = pod_group_of({{"spec", row.spec}}, row.source);
    const engine::Nearness read = nearness_in({{group.near, 1}});
    EXPECT_EQ(read.required, row.required) << row.spec;
    EXPECT_EQ(read.preferred, row.preferred) << row.spec;
  }
}

/// A PodGroup of Kubernetes may name any label.
TEST(NearGangOf, HasLabelsThatAreNoLevelsBeforeThese) {
  NearWish wish;
  wish.key = "zone";
  const engine::Nearness of_zone = nearness_in({{wish, 1}});
  EXPECT_EQ(of_zone.levels.front(), "zone");
  EXPECT_EQ(of_zone.levels.size(), 4U);
  EXPECT_EQ(of_zone.required, 1U);
  NearWish rack;
  rack.required = "rack";
  EXPECT_EQ(nearness_in({{wish, 1}, {rack, 3}}).required, 3U) << "the rack of a zone";
  const engine::Nearness by_affinity = nearness_in({{rack, 1}}, {"zone"});
  EXPECT_EQ(by_affinity.required, 3U);
  EXPECT_EQ(by_affinity.preferred, 1U);
  EXPECT_EQ(nearness_in({{NearWish{}, 1}}, {"zone"}, {}).levels, Levels{"zone"});
  EXPECT_EQ(nearness_in({{NearWish{}, 1}}, {"kubernetes.io/hostname"}).preferred, 3U);
}

TEST(NearGangOf, TakesTheNarrowestThatItsPodsSay) {
  NearWish block;
  block.required = "block";
  NearWish rack;
  rack.required = "rack";
  EXPECT_EQ(nearness_in({{block, 2}, {rack, 1}, {NearWish{}, 5}}).required, 2U);
}

TEST(NearGangOf, NamesTheLevelsWhereOneIsUnknown) {
  const auto trouble = [](const Json& annotations, const Levels& levels) {
    return near_gang_of(levels,
                        {{near_wish_of(pod_noting(annotations)["metadata"]), 1}},
                        {},
                        "ConfigMap gflow-kube-limits")
        .trouble;
  };
  EXPECT_EQ(trouble({{"gflow/topology-required", "row"}}, {"block", "rack"}),
            "gflow/topology-required is 'row', which is not one of the levels of ConfigMap "
            "gflow-kube-limits: block, rack.");
  EXPECT_EQ(trouble({{"gflow/topology-preferred", "rack"}}, {}),
            "gflow/topology-preferred is 'rack', and the cluster has no such levels: ConfigMap "
            "gflow-kube-limits names them.");
  EXPECT_EQ(trouble({{"kueue.x-k8s.io/podset-required-topology", "row"}}, {"rack"}),
            "Its gang is to be in one domain of 'row', which is not one of the levels of ConfigMap "
            "gflow-kube-limits: rack.");
  EXPECT_EQ(trouble({{"kueue.x-k8s.io/podset-required-topology", "rack"}}, {}), "")
      << "who wrote that minds it";
  EXPECT_NE(trouble({{"gflow/topology-required", "rack"}}, {"a/rack", "b/rack"}), "")
      << "it is not said which";
}

TEST(NearWishOf, OfAPodInNoGangIsAMistake) {
  EXPECT_EQ(pod_of(pod_noting({{"gflow/topology-required", "rack"}})).gang_mistake,
            "gflow/topology-required says how near each other pods of a gang are, and gflow/gang "
            "is missing, which says who");
  EXPECT_EQ(pod_of(pod_noting({{"kueue.x-k8s.io/podset-required-topology", "rack"}})).gang_mistake,
            "")
      << "it is one where there are levels: Scheduler";
}

}  // namespace
}  // namespace gflow::kube
