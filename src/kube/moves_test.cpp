// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kube/picture.h"
#include "kube/scheduler.h"

/// What 'gctl defrag' tells of a cluster, and whether its scheduler agrees.
namespace gflow::kube {
namespace {

using std::chrono::seconds;

/// A cluster with its scheduler: whoever is bound runs at once, whoever is evicted is made anew.
class MovingCluster {
 public:
  explicit MovingCluster(int nodes, int gpus = 4) {
    for (int i = 0; i < nodes; ++i) {
      Node& node = facts.nodes[fmt::format("n{}", i)];
      node.uid = node.name = fmt::format("n{}", i);
      node.labels = {{"gpu-type", "V100"}, {"host", node.name}, {"half", i % 2 == 0 ? "a" : "b"}};
      node.allocatable = {{"cpu", 64'000}, {"pods", 110'000}, {"nvidia.com/gpu", gpus * 1000}};
      scheduler_.put(node);
    }
    scheduler_.know_name_spaces();
    scheduler_.begin(now());
  }

  Pod& make(const std::string& name, const std::string& gpu, const std::string& owner = "Set s") {
    Pod& pod = facts.pods[name];
    pod = {};
    pod.uid = pod.name = name;
    pod.name_space = "default";
    pod.scheduler = "gflow";
    pod.owner = owner;
    pod.gpu = gpu;
    pod.created = now().wall;
    return pod;
  }
  /// It comes, and what there is room for is on a node then.
  void come(const Pod& pod) {
    scheduler_.put(pod);
    settle();
  }
  void come(const std::string& name, const std::string& gpu, const std::string& node) {
    Pod& pod = make(name, gpu);
    pod.wishes.node_selector = {{"host", node}};
    come(pod);
    pod.wishes.node_selector.clear();
    scheduler_.put(pod);
  }
  void leave(const std::string& name) {
    facts.pods.erase(name);
    scheduler_.pod_gone(name);
  }
  /// All at once, and they come again under other names.
  void evict(const std::vector<std::string>& names) {
    std::vector<Pod> again;
    for (const std::string& name : names) {
      const Pod gone = facts.pods.at(name);
      leave(name);
      Pod& made = make(name + "-again", gone.gpu, gone.owner);
      made.wishes = gone.wishes;
      made.priority = gone.priority;
      again.push_back(made);
    }
    for (const Pod& pod : again) scheduler_.put(pod);
    settle();
  }

  std::vector<DefragPlan> plans() {
    shown = picture_of(facts, now(), 1);
    EXPECT_EQ(shown.state.check(), "");
    return shown.state.defrag(100, now());
  }
  [[nodiscard]] std::string name_of(JobId id) const { return shown.state.find(id)->spec.name; }
  [[nodiscard]] std::string where(const std::string& name) const {
    return facts.pods.at(name).node;
  }
  /// "big to n0 after a from n0 to n1", or the outcome.
  std::string told() {
    std::string text;
    for (const DefragPlan& plan : plans()) {
      text += (text.empty() ? "" : "; ") + name_of(plan.job) + " ";
      if (plan.outcome != DefragOutcome::Moves) {
        text += defrag_outcome_name(plan.outcome);
        continue;
      }
      text += "to " + plan.to.front().node + " after";
      for (const DefragMove& move : plan.moves) {
        text += fmt::format(
            " {} from {} to {}", name_of(move.job), move.from.front().node, move.to.front().node);
      }
    }
    return text;
  }

  ClusterFacts facts;
  Picture shown{engine::State({}, ""), {}, {}};

 private:
  Now now() {
    mono_ += seconds(2);
    return {WallTime(seconds(1'800'000'000)) + mono_, MonoTime(mono_)};
  }
  void settle() {
    while (true) {
      const Decisions decisions = scheduler_.settle(now());
      ASSERT_EQ(scheduler_.check(), "");
      if (decisions.binds.empty()) return;
      for (const Bind& bind : decisions.binds) {
        Pod& pod = facts.pods.at(bind.name);
        pod.node = bind.node;
        pod.allocation = bind.allocation;
        pod.started = now().wall;
        scheduler_.bound(bind.uid);
        scheduler_.put(pod);
      }
    }
  }

  Scheduler scheduler_{"gflow", {}};
  std::chrono::milliseconds mono_{1000};
};

TEST(Moves, AreToldOfPodsThatAreMadeAnew) {
  MovingCluster cluster(2, 2);
  cluster.come("a", "1", "n0");
  cluster.come("b", "1", "n1");
  cluster.come(cluster.make("big", "2"));
  EXPECT_EQ(cluster.told(), "big to n1 after b from n1 to n0") << "it lost the least";
  cluster.facts.pods.at("b").owner.clear();
  EXPECT_EQ(cluster.told(), "big to n0 after a from n0 to n1");
  cluster.facts.pods.at("a").may_evict = false;
  EXPECT_EQ(cluster.told(), "big nothing_movable");
}

TEST(Moves, AreToldOnlyToNodesThatAdmitThem) {
  MovingCluster cluster(2, 2);
  cluster.come("a", "1", "n0");
  cluster.come("b", "1", "n1");
  cluster.come(cluster.make("big", "2"));
  cluster.facts.pods.at("b").wishes.node_selector = {{"host", "n1"}};
  EXPECT_EQ(cluster.told(), "big to n0 after a from n0 to n1");
  cluster.facts.nodes.at("n1").taints = {{"team", "vision", "NoSchedule"}};
  EXPECT_EQ(cluster.told(), "big not_enough_free");
  cluster.facts.pods.at("a").wishes.tolerations = {{"team", "Exists", "", ""}};
  EXPECT_EQ(cluster.told(), "big to n0 after a from n0 to n1");
}

/// One that others keep from nodes by where they are could be planned for a place that it does not
/// get.
TEST(Moves, AreNotToldOfPodsThatOthersKeepApart) {
  MovingCluster cluster(3, 2);
  for (const char* name : {"a", "b"}) {
    cluster.come(name, "1", name == std::string("a") ? "n0" : "n1");
    cluster.facts.pods.at(name).labels = {{"app", "web"}};
  }
  cluster.come("c", "2", "n2");
  cluster.come(cluster.make("big", "2"));
  EXPECT_TRUE(cluster.told().starts_with("big to ")) << cluster.told();
  Pod& keeper = cluster.facts.pods.at("c");
  keeper.rules = neighbour_rules_of(nlohmann::json::parse(R"({"affinity": {"podAntiAffinity":
          {"requiredDuringSchedulingIgnoredDuringExecution": [
              {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}]}}})"),
                                    "default",
                                    {});
  EXPECT_EQ(cluster.told(), "big nothing_movable");
}

TEST(Moves, AreNotToldOfPodsThatADisruptionBudgetKeeps) {
  MovingCluster cluster(2, 2);
  cluster.come("a", "1", "n0");
  cluster.come("b", "1", "n1");
  cluster.come(cluster.make("big", "2"));
  cluster.facts.pods.at("b").labels = {{"app", "web"}};
  Budget& budget = cluster.facts.budgets["budget"];
  budget = {.uid = "budget", .name_space = "default", .selector = Term{{"app", "In", {"web"}}}};
  EXPECT_EQ(cluster.told(), "big to n0 after a from n0 to n1");
  budget.selector = Term{};
  EXPECT_EQ(cluster.told(), "big nothing_movable");
  budget.allowed = 1;
  EXPECT_EQ(cluster.told(), "big to n1 after b from n1 to n0");
}

TEST(Moves, AreToldOfPodsThatStartTogether) {
  MovingCluster cluster(3, 4);
  cluster.come("a", "1", "n0");
  cluster.come("b", "1", "n1");
  cluster.come("c", "2", "n2");
  for (const char* name : {"w0", "w1", "w2", "w3"}) {
    Pod& pod = cluster.make(name, "2");
    pod.gang = GangWish{{GangSource::Pods, "default", "train"}, 4};
    cluster.come(pod);
  }
  const auto plans = cluster.plans();
  ASSERT_EQ(plans.size(), 1U);
  EXPECT_EQ(plans.front().together.size(), 3U);
  EXPECT_EQ(plans.front().moves.size(), 1U);
  // Of one that runs nobody moves.
  for (const char* name : {"a", "b", "c"}) {
    cluster.facts.pods.at(name).gang = GangWish{{GangSource::Pods, "default", "other"}, 3};
  }
  EXPECT_EQ(cluster.plans().front().outcome, DefragOutcome::NothingMovable);
}

TEST(Moves, PodsThatAreShownAreNeverPreempted) {
  MovingCluster cluster(1, 2);
  cluster.come("a", "2", "n0");
  Pod& urgent = cluster.make("urgent", "2");
  urgent.priority = 1000;
  cluster.come(urgent);
  EXPECT_EQ(cluster.told(), "urgent not_enough_free");
  EXPECT_FALSE(cluster.shown.state.policy().preempt);
}

/// Pods as they happen to come, of which some have gone, and none waits.
void crowd(MovingCluster& cluster, std::mt19937& draw) {
  const auto below = [&draw](unsigned end) { return static_cast<int>(draw() % end); };
  for (int i = 0; i < 20; ++i) {
    const char* const gpus[] = {"1", "1", "2", "0.5", "3"};
    const char* const owner = below(4) == 0 ? "" : "ReplicaSet s";
    Pod& pod = cluster.make(fmt::format("p{}", i), gpus[below(5)], owner);
    if (below(3) == 0) pod.wishes.node_selector = {{"half", below(2) == 0 ? "a" : "b"}};
    cluster.come(pod);
  }
  const auto gone = [&](bool waits) {
    std::vector<std::string> names;
    for (const auto& [name, pod] : cluster.facts.pods) {
      if (waits ? pod.node.empty() : !pod.node.empty() && below(3) == 0) names.push_back(name);
    }
    return names;
  };
  for (const std::string& name : gone(false)) cluster.leave(name);
  for (const std::string& name : gone(true)) cluster.leave(name);  // it would take what is free
}

std::vector<std::string> movers_of(const MovingCluster& cluster, const DefragPlan& plan) {
  std::vector<std::string> names;
  for (const DefragMove& move : plan.moves) names.push_back(cluster.name_of(move.job));
  return names;
}

/// With the scheduler of the cluster itself: those that are evicted find room, and so does the one
/// that waited.
TEST(Moves, WhatIsToldComesTrue) {
  int came = 0;
  std::size_t moved = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 draw(seed);
    MovingCluster cluster(2 + static_cast<int>(draw() % 4));
    crowd(cluster, draw);
    cluster.come(cluster.make("big", "4"));
    const auto plans = cluster.plans();
    if (plans.empty() || plans.front().moves.empty()) continue;
    const std::vector<std::string> movers = movers_of(cluster, plans.front());
    const std::string told = cluster.told();
    cluster.evict(movers);
    EXPECT_EQ(cluster.where("big"), plans.front().to.front().node) << seed << ": " << told;
    for (const std::string& name : movers) {
      EXPECT_NE(cluster.where(name + "-again"), "") << seed << ": " << told;
    }
    ++came;
    moved += movers.size();
  }
  EXPECT_GT(came, 10);
  EXPECT_GT(moved, 15U);
}

}  // namespace
}  // namespace gflow::kube
