// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "kube/gang_cluster_test.h"

/// Pods that start together: as they say themselves, or as a PodGroup says.
namespace gflow::kube {
namespace {

/// Two nodes of two GPUs.
class KubeGangs : public GangCluster {
 protected:
  KubeGangs() : GangCluster(std::chrono::minutes(2), "1") {
    node("n0", 2);
    node("n1", 2);
    scheduler.begin(now());
  }

  void node(const std::string& name, int gpus, int most_pods = 110) {
    put_node(name, gpus, most_pods);
  }
  Names come(const std::string& name, std::size_t size, const std::string& gpu = "1") {
    return put(of_gang(name, size, gpu));
  }
  Names come_in_group(const std::string& name, GangSource source = GangSource::Volcano) {
    Pod made = pod(name);
    made.gang = GangWish{{source, "default", "train"}, 0};
    return put(made);
  }
  Names put_group(std::size_t least, GangSource source = GangSource::Volcano) {
    scheduler.put(PodGroup{"g1", {source, "default", "train"}, least});
    return settle();
  }
};

TEST_F(KubeGangs, StartTogether) {
  EXPECT_EQ(come("a", 3), Names{});
  EXPECT_EQ(come("b", 3), Names{});
  EXPECT_NE(why("a").find("3 pods of its gang train start together, of which 2 wait."),
            std::string::npos)
      << why("a");
  EXPECT_EQ(scheduler.counts().waiting.at(static_cast<std::size_t>(WaitsFor::Gang)), 2U);
  EXPECT_EQ(come("c", 3), (Names{"a", "b", "c"}));
}

TEST_F(KubeGangs, HoldNothingWhereThereIsRoomForSome) {
  EXPECT_EQ(put(pod("other", "2")), Names{"other"});
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(come(name, 3), Names{});
  EXPECT_NE(why("c").find("3 pods of its gang train start together, and there is room for 2."),
            std::string::npos)
      << why("c");
  EXPECT_EQ(put(pod("small")), Names{"small"});
  EXPECT_EQ(gone("other"), (Names{"a", "b", "c"}));
}

TEST_F(KubeGangs, OfOneNameInTwoNamespacesAreTwo) {
  EXPECT_EQ(come("a", 2), Names{});
  Pod other = pod("b");
  other.name_space = "vision";
  other.gang = GangWish{{GangSource::Pods, "vision", "train"}, 2};
  EXPECT_EQ(put(other), Names{});
  EXPECT_EQ(come("c", 2), (Names{"a", "c"}));
}

TEST_F(KubeGangs, WaitForTheirPodGroup) {
  EXPECT_EQ(come_in_group("a"), Names{});
  EXPECT_EQ(come_in_group("b"), Names{});
  EXPECT_EQ(why("a"),
            "It starts together with others, and the PodGroup default/train of "
            "scheduling.volcano.sh/v1beta1 that says with how many is not there.");
  EXPECT_EQ(scheduler.group_sources(), std::set{GangSource::Volcano});
  EXPECT_EQ(put_group(3), Names{});
  EXPECT_EQ(put_group(3, GangSource::Kai), Names{}) << "the group of another API";
  EXPECT_EQ(come_in_group("c"), (Names{"a", "b", "c"}));
  EXPECT_EQ(come_in_group("d"), Names{"d"});
}

TEST_F(KubeGangs, NeedFewerWhenTheirPodGroupSaysSo) {
  put_group(4);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(come_in_group(name), Names{});
  EXPECT_EQ(put_group(3), (Names{"a", "b", "c"}));
}

TEST_F(KubeGangs, KeepWhatAGroupSaidThatIsGone) {
  put_group(2);
  EXPECT_EQ(come_in_group("a"), Names{});
  scheduler.group_gone("g1");
  EXPECT_EQ(settle(), Names{});
  EXPECT_EQ(come_in_group("b"), (Names{"a", "b"}));
}

TEST_F(KubeGangs, OneWhoseBindingFailedComesAfter) {
  come("a", 2);
  refused = {"a"};
  EXPECT_EQ(come("b", 2), (Names{"a", "b"}));
  EXPECT_EQ(pods.at("b").node.empty(), false);
  EXPECT_EQ(settle(), Names{"a"});
}

/// What the engine does not count: a node takes fewer of them than it has GPUs.
TEST_F(KubeGangs, AreTakenBackWholeWhereANodeTakesTooFew) {
  node("n0", 2, 1);
  node("n1", 2, 1);
  settle();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(come(name, 3), Names{});
  EXPECT_EQ(scheduler.state().totals().gpus_free, 4);
  EXPECT_EQ(put(pod("small")), Names{"small"});
  node("n2", 1);
  node("n3", 1);
  EXPECT_EQ(settle(), (Names{"a", "b", "c"}));
}

TEST_F(KubeGangs, AreKnownByOneThatStartsAnew) {
  come("a", 3);
  come("b", 3);
  Scheduler next{"gflow", engine::Policy{}};
  Pod last = pod("c");
  last.gang = GangWish{{GangSource::Pods, "default", "train"}, 3};
  tell_all(next);
  EXPECT_TRUE(next.settle(now()).binds.empty());
  next.put(last);
  EXPECT_EQ(next.settle(now()).binds.size(), 3U);
  EXPECT_EQ(next.check(), "");
}

/// Half of it was bound when the one before was killed.
TEST_F(KubeGangs, AreCompletedByOneThatStartsAnew) {
  for (const char* name : {"a", "b", "c"}) come(name, 3);
  Pod unbound = pods.at("c");
  unbound.node = unbound.allocation = "";
  pods["c"] = unbound;
  Scheduler next{"gflow", engine::Policy{}};
  tell_all(next);
  const Decisions decisions = next.settle(now());
  ASSERT_EQ(decisions.binds.size(), 1U);
  EXPECT_EQ(decisions.binds.front().name, "c");
}

TEST_F(KubeGangs, KeepToTheLimitOfTheirNamespace) {
  engine::GpuQuota quota;
  quota.per_user = 2;
  scheduler.limit(quota);
  settle();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(come(name, 3), Names{});
  EXPECT_NE(why("a").find("Its namespace default holds 0 GPUs and may hold 2 at once; 3 pods of "
                          "its gang train start together."),
            std::string::npos)
      << why("a");
  quota.per_user = 3;
  scheduler.limit(quota);
  EXPECT_EQ(settle(), (Names{"a", "b", "c"}));
}

TEST_F(KubeGangs, ThatOneLeavesWaitForAnother) {
  come("a", 3);
  come("b", 3);
  EXPECT_EQ(gone("a"), Names{});
  EXPECT_EQ(come("c", 3), Names{});
  EXPECT_EQ(come("d", 3), (Names{"b", "c", "d"}));
}

nlohmann::json object_with(const char* path, const char* text) {
  nlohmann::json object = {{"metadata", {{"namespace", "default"}, {"name", "p"}, {"uid", "u"}}}};
  object[nlohmann::json::json_pointer(path)] = text;
  return object;
}

TEST(GangOfAPod, IsWhatItSays) {
  struct Case {
    const char* path;
    GangSource source;
  };
  const std::vector<Case> cases = {
      {"/spec/schedulingGroup/podGroupName", GangSource::Kubernetes},
      {"/metadata/annotations/pod-group-name", GangSource::Kai},
      {"/metadata/annotations/scheduling.k8s.io~1group-name", GangSource::Volcano},
      {"/metadata/labels/scheduling.x-k8s.io~1pod-group", GangSource::Coscheduling}};
  for (const Case& one : cases) {
    std::string mistake;
    const auto wish = gang_of(object_with(one.path, "train"), mistake);
    ASSERT_TRUE(wish) << one.path;
    EXPECT_EQ(wish->name, (GangName{one.source, "default", "train"})) << one.path;
    EXPECT_EQ(mistake, "");
  }
  std::string mistake;
  EXPECT_FALSE(gang_of(object_with("/metadata/labels/app", "train"), mistake));
  EXPECT_EQ(mistake, "");
}

TEST(GangOfAPod, WithoutASizeIsAMistake) {
  struct Case {
    std::map<std::string, std::string> annotations;
    std::size_t size;
    const char* mistake;
  };
  const std::vector<Case> cases = {
      {{{"gflow/gang", "t"}, {"gflow/gang-size", "4"}}, 4, ""},
      {{{"gflow/gang", "t"}}, 0, "gflow/gang-size is missing"},
      {{{"gflow/gang-size", "4"}}, 0, "gflow/gang is missing"},
      {{{"gflow/gang", "t"}, {"gflow/gang-size", "0"}}, 0, "'0', and no number from 1"},
      {{{"gflow/gang", "t"}, {"gflow/gang-size", "four"}}, 0, "'four', and no number"},
      {{{"gflow/gang", "t"}, {"gflow/gang-size", "99999999999999999999"}}, 0, "and no number"}};
  for (const Case& one : cases) {
    std::string mistake;
    const auto wish = gang_of({{"metadata", {{"annotations", one.annotations}}}}, mistake);
    EXPECT_EQ(wish ? wish->size : 0, one.size);
    EXPECT_NE(mistake.find(one.mistake), std::string::npos) << mistake;
    EXPECT_EQ(mistake.empty(), one.size > 0);
  }
}

TEST(PodGroupOfAnApi, SaysHowManyStart) {
  struct Case {
    GangSource source;
    nlohmann::json spec;
    std::size_t least;
  };
  const nlohmann::json parts = {{{"name", "a"}, {"minMember", 2}}, {{"name", "b"}}};
  const std::vector<Case> cases = {
      {GangSource::Volcano, {{"minMember", 3}}, 3},
      {GangSource::Coscheduling, {{"minMember", 3}}, 3},
      {GangSource::Kai, {{"minMember", 3}, {"subGroups", parts}}, 3},
      {GangSource::Kai, {{"subGroups", parts}}, 3},
      {GangSource::Kubernetes, {{"schedulingPolicy", {{"gang", {{"minCount", 3}}}}}}, 3},
      {GangSource::Kubernetes, {{"schedulingPolicy", {{"basic", nlohmann::json::object()}}}}, 1},
      {GangSource::Volcano, nlohmann::json::object(), 1},
      {GangSource::Volcano, {{"minMember", -3}}, 1},
      {GangSource::Volcano, {{"minMember", "x"}}, 1}};
  for (const Case& one : cases) {
    const nlohmann::json object = {{"metadata", {{"name", "g"}}}, {"spec", one.spec}};
    EXPECT_EQ(pod_group_of(object, one.source).least, one.least) << one.spec;
  }
}

}  // namespace
}  // namespace gflow::kube
