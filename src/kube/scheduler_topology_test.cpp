// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "kube/gang_cluster_test.h"

/// In which racks the pods of a gang are.
namespace gflow::kube {
namespace {

const std::string kRack = "example.com/topology-rack";

/// Racks r0 of one node and r1 of two, of two GPUs each.
class KubeTopology : public GangCluster {
 protected:
  KubeTopology() : GangCluster(std::chrono::seconds(10), "2") {
    node("n0", "r0");
    node("n1", "r1");
    node("n2", "r1");
    scheduler.divide({kRack});
    scheduler.begin(now());
  }

  void node(const std::string& name, const std::string& rack, int most_pods = 110) {
    std::map<std::string, std::string> labels = {{"kubernetes.io/hostname", name}};
    if (!rack.empty()) labels[kRack] = rack;
    put_node(name, 2, most_pods, labels);
  }
  Pod required(Pod made, const std::string& level = "rack") {
    made.near.required = level;
    made.near.is_own = true;
    return made;
  }
  /// Where those are that have a node.
  Names places(const std::vector<std::string>& names) {
    Names found;
    for (const std::string& name : names) {
      if (!pods.at(name).node.empty()) found.insert(pods.at(name).node);
    }
    return found;
  }
};

TEST_F(KubeTopology, KeepsAGangInOneRack) {
  put(required(of_gang("a", 2)));
  put(required(of_gang("b", 2)));
  EXPECT_EQ(places({"a", "b"}), (Names{"n1", "n2"}));
}

TEST_F(KubeTopology, SaysHowMuchRoomTheBestRackHas) {
  for (const char* name : {"a", "b", "c"}) put(required(of_gang(name, 3)));
  EXPECT_EQ(places({"a", "b", "c"}), Names{});
  EXPECT_NE(why("a").find("3 pods of its gang train start together in one rack (" + kRack +
                          "), and the one with most room has room for 2."),
            std::string::npos)
      << why("a");
  node("n3", "r1");
  settle();
  EXPECT_EQ(places({"a", "b", "c"}), (Names{"n1", "n2", "n3"}));
}

TEST_F(KubeTopology, GoesAnywhereWhereThatIsOnlyPreferred) {
  for (const char* name : {"a", "b", "c"}) {
    Pod made = of_gang(name, 3);
    made.near.preferred = "rack";
    made.near.is_own = true;
    put(made);
  }
  EXPECT_EQ(places({"a", "b", "c"}), (Names{"n0", "n1", "n2"}));
}

TEST_F(KubeTopology, IsReadAgainWhereLabelsOfNodesChange) {
  node("n2", "r2");
  put(required(of_gang("a", 2)));
  put(required(of_gang("b", 2)));
  EXPECT_EQ(places({"a", "b"}), Names{});
  node("n0", "r1");
  settle();
  EXPECT_EQ(places({"a", "b"}), (Names{"n0", "n1"}));
}

TEST_F(KubeTopology, LeavesOutNodesWithoutALabel) {
  node("n1", "");
  put(required(of_gang("a", 2)));
  put(required(of_gang("b", 2)));
  EXPECT_EQ(places({"a", "b"}), Names{});
}

TEST_F(KubeTopology, WaitsForALevelThatThereIsNot) {
  put(required(of_gang("a", 2), "row"));
  put(required(of_gang("b", 2), "row"));
  EXPECT_EQ(places({"a", "b"}), Names{});
  EXPECT_NE(why("a").find("gflow/topology-required is 'row', which is not one of the levels of "
                          "ConfigMap gflow-kube-limits: " +
                          kRack + "."),
            std::string::npos)
      << why("a");
  EXPECT_EQ(scheduler.counts().waiting.at(static_cast<std::size_t>(WaitsFor::Gang)), 2U);
  for (auto& [name, one] : nodes) {
    one.labels["row"] = one.labels[kRack];
    scheduler.put(one);
  }
  scheduler.divide({"row", kRack});
  settle();
  EXPECT_EQ(places({"a", "b"}), (Names{"n1", "n2"}));
}

TEST_F(KubeTopology, PutsOneMadeAnewWhereItsGangRuns) {
  put(required(of_gang("a", 2)));
  put(required(of_gang("b", 2)));
  const std::string its = pods.at("b").node;
  gone("b");
  put(pod("other"));
  if (places({"other"}) != Names{its}) {  // then it is in the other rack, and this one too
    put(pod("another"));
  }
  put(required(of_gang("c", 2)));
  EXPECT_EQ(places({"c"}), Names{});
  EXPECT_NE(why("c").find("It has to be in the rack (" + kRack + ") where its gang train runs."),
            std::string::npos)
      << why("c");
  for (const char* name : {"other", "another"}) {
    if (pods.contains(name) && pods.at(name).node == its) gone(name);
  }
  EXPECT_EQ(places({"c"}), Names{its});
}

/// One that takes over knows where they are.
TEST_F(KubeTopology, HoldsAfterARestart) {
  node("n3", "r0");
  put(required(of_gang("a", 2)));
  put(required(of_gang("b", 2)));
  const Names rack = places({"a", "b"});
  ASSERT_EQ(rack.size(), 2U);
  const std::string lost = pods.at("b").node;
  gone("b");
  Pod anew = required(of_gang("c", 2));
  pods["c"] = anew;
  Scheduler next("gflow", engine::Policy{});
  next.divide({kRack});
  for (const auto& [name, one] : nodes) next.put(one);
  for (const auto& [uid, one] : pods) next.put(one);
  next.begin(now());
  EXPECT_EQ(next.settle(now()).binds.size(), 1U);
  ASSERT_EQ(next.check(), "");
  const auto where = next.state().find(JobId(2));
  ASSERT_NE(where, nullptr);
  ASSERT_NE(attempt_of(*where), nullptr);
  EXPECT_EQ(attempt_of(*where)->allocation.node, lost);
}

/// What the engine does not count (ports, numbers of pods) is found out in each rack.
TEST_F(KubeTopology, TriesTheNextRackWhereSomethingElseIsShort) {
  node("n1", "r1", 0);
  node("n3", "r3");
  node("n4", "r3");
  node("n5", "r3");
  for (const char* name : {"a", "b"}) {
    Pod made = required(of_gang(name, 2, "1"));
    made.ports = {{8080, "TCP", ""}};
    put(made);
  }
  const Names there = places({"a", "b"});
  EXPECT_EQ(there.size(), 2U) << "one port, so two nodes";
  for (const std::string& name : there) EXPECT_EQ(nodes.at(name).labels.at(kRack), "r3");
}

/// The smallest rack is where the first of them would go best.
TEST_F(KubeTopology, TriesEachDomainOfAPodAffinity) {
  scheduler.divide({});
  for (const char* name : {"a", "b"}) {
    Pod made = of_gang(name, 2);
    made.labels = {{"app", "train"}};
    made.rules = neighbour_rules_of(nlohmann::json::parse(R"({"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
              {"labelSelector": {"matchLabels": {"app": "train"}}, "topologyKey": ")" +
                                                          kRack + R"("}]}}})"),
                                    "default",
                                    made.labels);
    put(made);
  }
  EXPECT_EQ(places({"a", "b"}), (Names{"n1", "n2"}));
}

TEST_F(KubeTopology, SaysThatNoNodeHasTheLabelOfTheLevel) {
  for (const char* name : {"n0", "n1", "n2"}) node(name, "");
  for (const char* name : {"a", "b"}) put(required(of_gang(name, 2)));
  EXPECT_EQ(places({"a", "b"}), Names{});
  EXPECT_NE(why("a").find("in one rack (" + kRack + "), and no node has that label."),
            std::string::npos)
      << why("a");
}

/// Of a Job of Kueue nobody says here which pods are of it.
TEST_F(KubeTopology, SaysWhatIsMissingWhereAnotherSystemsPodIsInNoGang) {
  Pod made = pod("a");
  made.near.required = kRack;
  put(made);
  EXPECT_EQ(places({"a"}), Names{});
  EXPECT_NE(why("a").find("It has to be in one domain of '" + kRack +
                          "' with others, and it is not said with whom: gflow/gang and "
                          "gflow/gang-size on its pods do, also for those of Kueue."),
            std::string::npos)
      << why("a");
  Pod preferring = pod("b");
  preferring.near.preferred = kRack;
  put(preferring);
  EXPECT_EQ(places({"b"}).size(), 1U);
  scheduler.divide({});
  settle();
  EXPECT_EQ(places({"a"}).size(), 1U) << "there are no domains";
}

/// As it does after a restart.
TEST_F(KubeTopology, OneInNoGangThatWaitsIsHeldOnceThereAreLevels) {
  scheduler.divide({});
  for (const char* name : {"x", "y", "z"}) put(pod(name));
  Pod lone = pod("lone");
  lone.near.required = "rack";
  put(lone);
  ASSERT_EQ(why("lone").find("with others"), std::string::npos) << why("lone");
  scheduler.divide({kRack});
  settle();
  EXPECT_EQ(gone("x"), Names{});
  EXPECT_NE(why("lone").find("It has to be in one domain of 'rack' with others"), std::string::npos)
      << why("lone");
  scheduler.divide({});
  EXPECT_EQ(settle(), Names{"lone"});
}

TEST_F(KubeTopology, GoesByTheLevelsHoweverManyLabelsPodsName) {
  for (auto& [name, one] : nodes) {
    one.labels["row"] = one.labels[kRack];
    scheduler.put(one);
  }
  for (int i = 0; i < 70; ++i) {
    Pod made = pod(fmt::format("p{}", i));
    made.gang = GangWish{{GangSource::Pods, "default", made.name}, 1};
    made.near.key = fmt::format("label{:02}", i);
    pods[made.uid] = made;
    scheduler.put(made);
  }
  settle();
  EXPECT_NE(why("p0").find("no node has that label"), std::string::npos) << why("p0");
  EXPECT_NE(why("p69").find("label69 is not looked at"), std::string::npos) << why("p69");
  scheduler.divide({"row"});
  put(required(of_gang("a", 2), "row"));
  put(required(of_gang("b", 2), "row"));
  EXPECT_EQ(places({"a", "b"}), (Names{"n1", "n2"}));
  gone("p0");
  EXPECT_NE(why("p69").find("label69 is not looked at"), std::string::npos) << "five more wait";
  for (int i = 1; i < 10; ++i) gone(fmt::format("p{}", i));
  EXPECT_NE(why("p69").find("no node has that label"), std::string::npos) << why("p69");
}

/// Neither those of one namespace nor those that are only tried first take all the places.
TEST_F(KubeTopology, GoesByALabelThatIsRequiredWhateverOthersName) {
  for (auto& [name, one] : nodes) {
    one.labels["row"] = one.labels[kRack];
    scheduler.put(one);
  }
  scheduler.divide({});
  for (int i = 0; i < 70; ++i) {
    for (const bool is_only_tried : {false, true}) {
      Pod made = pod(fmt::format("p{}{}", i, is_only_tried ? "-tried" : ""), "");
      made.name_space = is_only_tried ? "others" : "theirs";
      made.gang = GangWish{{GangSource::Pods, made.name_space, made.name}, 1};
      const std::string label = fmt::format("label-of-{}", made.name);
      if (is_only_tried) {
        made.labels = {{"app", made.name}};
        made.rules = neighbour_rules_of(
            {{"affinity",
              {{"podAffinity",
                {{"requiredDuringSchedulingIgnoredDuringExecution",
                  nlohmann::json::array(
                      {{{"labelSelector", {{"matchLabels", {{"app", made.name}}}}},
                        {"topologyKey", label}}})}}}}}},
            made.name_space,
            made.labels);
      } else {
        made.near.key = label;
      }
      pods[made.uid] = made;
      scheduler.put(made);
    }
  }
  settle();
  for (const char* name : {"a", "b"}) {
    Pod made = of_gang(name, 2);
    made.near.key = "row";
    put(made);
  }
  EXPECT_EQ(places({"a", "b"}), (Names{"n1", "n2"})) << why("a");
}

/// Whoever has to be near others is not put anywhere because of a slip in the ConfigMap.
TEST_F(KubeTopology, WaitsWhereTheLevelsCannotBeRead) {
  scheduler.divide({}, true);
  for (const char* name : {"a", "b"}) {
    Pod made = of_gang(name, 2);
    made.near.required = kRack;
    put(made);
  }
  EXPECT_EQ(places({"a", "b"}), Names{});
  EXPECT_NE(why("a").find("topology_levels of ConfigMap gflow-kube-limits cannot be read"),
            std::string::npos)
      << why("a");
  scheduler.divide({kRack});
  settle();
  EXPECT_EQ(places({"a", "b"}), (Names{"n1", "n2"}));
}

/// As how many start together is, until another PodGroup of its name comes.
TEST_F(KubeTopology, KnowsWhatAPodGroupSaidThatIsGone) {
  PodGroup group{"u", {GangSource::Volcano, "default", "train"}, 3};
  group.near.highest_tier = 1;
  scheduler.put(group);
  const auto member = [&](const std::string& name) {
    Pod made = pod(name);
    made.gang = GangWish{group.name, 0};
    return made;
  };
  put(member("a"));
  scheduler.group_gone("u");
  put(member("b"));
  put(member("c"));
  EXPECT_EQ(places({"a", "b", "c"}), Names{}) << "no rack has three nodes";
  node("n3", "r1");
  settle();
  EXPECT_EQ(places({"a", "b", "c"}), (Names{"n1", "n2", "n3"}));
}

TEST_F(KubeTopology, ANamespaceMayNotHoldIsSaidWithTheLevel) {
  engine::GpuQuota quota;
  quota.per_user = 3;
  scheduler.limit(quota);
  put(required(of_gang("a", 2)));
  put(required(of_gang("b", 2)));
  EXPECT_NE(why("a").find("2 pods of its gang train start together in one rack"), std::string::npos)
      << why("a");
}

}  // namespace
}  // namespace gflow::kube
