// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kube/neighbours_test.h"
#include "kube/scheduler.h"

/// Pods that mind each other, as they come, wait and go.
namespace gflow::kube {
namespace {

const std::string kWeb = R"("labelSelector": {"matchLabels": {"app": "web"}})";

std::string required(const char* kind, const std::string& key, const std::string& more = kWeb) {
  return fmt::format(
      R"({{"affinity": {{"{}": {{"requiredDuringSchedulingIgnoredDuringExecution": [{{"topologyKey": "{}", {}}}]}}}}}})",
      kind,
      key,
      more);
}
std::string near(const std::string& key) { return required("podAffinity", key); }
std::string apart(const std::string& key) { return required("podAntiAffinity", key); }
std::string spread(const std::string& key, int max_skew = 1) {
  return fmt::format(
      R"({{"topologySpreadConstraints": [{{"topologyKey": "{}", "maxSkew": {}, {}}}]}})",
      key,
      max_skew,
      kWeb);
}

/// Nodes a1, a2, b1, b2, c1, c2 of three zones with two GPUs each. What is bound is so at once, and
/// what others do not allow is no decision.
class Zones {
 public:
  Zones() {
    for (const char* name : {"a1", "a2", "b1", "b2", "c1", "c2"}) {
      Node& node = nodes_[name];
      node.uid = node.name = name;
      node.labels = {{"host", name}, {"zone", std::string(1, name[0])}};
      node.allocatable = {{"cpu", 64'000}, {"pods", 110'000}, {"nvidia.com/gpu", 2000}};
    }
    restart();
  }

  void restart() {
    scheduler_.emplace("gflow", engine::Policy{});
    for (const auto& [name, node] : nodes_) scheduler_->put(node);
    for (const auto& [name, pod] : pods_) scheduler_->put(pod);
    scheduler_->know_name_spaces();
    scheduler_->begin(now());
    settle();
  }

  /// One that waits, with app=`app`; not looked at before settle().
  Pod& add(const std::string& name,
           const std::string& app,
           const std::string& spec = "{}",
           const std::string& gpu = "") {
    Pod& pod = pods_[name];
    pod.uid = pod.name = name;
    pod.name_space = "default";
    pod.scheduler = "gflow";
    pod.gpu = gpu;
    pod.created = WallTime(std::chrono::seconds(pods_.size()));
    pod.labels = {{"app", app}};
    pod.rules = neighbour_rules_of(nlohmann::json::parse(spec), pod.name_space, pod.labels);
    scheduler_->put(pod);
    return pod;
  }
  void come(const std::string& name,
            const std::string& app,
            const std::string& spec = "{}",
            const std::string& gpu = "") {
    add(name, app, spec, gpu);
    settle();
  }
  /// One of another scheduler.
  void run(const std::string& name,
           const std::string& app,
           const std::string& node,
           const std::string& spec = "{}",
           int gpus = 0) {
    Pod pod = std::exchange(add(name, app, spec), {});
    scheduler_->pod_gone(name);
    pod.scheduler = "default-scheduler";
    pod.node = node;
    pod.requests = {{"nvidia.com/gpu", gpus * 1000}};
    put(pod);
  }
  void put(const Pod& pod) {
    pods_[pod.name] = pod;
    scheduler_->put(pod);
    settle();
  }
  void put(const Node& node) {
    nodes_[node.name] = node;
    scheduler_->put(node);
    settle();
  }
  void gone(const std::string& name) {
    pods_.erase(name);
    scheduler_->pod_gone(name);
    settle();
  }
  void settle() {
    for (int round = 0; round < 8; ++round) {
      const Decisions decisions = scheduler_->settle(now());
      ASSERT_EQ(scheduler_->check(), "");
      for (const Bind& bind : decisions.binds) {
        Pod& pod = pods_.at(bind.name);
        EXPECT_EQ(refusal(pod, bind.node), "") << bind.name << " on " << bind.node;
        if (refuses > 0) {
          --refuses;
          scheduler_->not_bound(bind.uid, "a conflict");
          continue;
        }
        pod.node = bind.node;
        pod.allocation = bind.allocation;
        scheduler_->bound(bind.uid);
        scheduler_->put(pod);
      }
    }
  }

  [[nodiscard]] const Node& node(const std::string& name) const { return nodes_.at(name); }
  [[nodiscard]] const Pod& pod(const std::string& name) const { return pods_.at(name); }
  [[nodiscard]] std::string where(const std::string& name) const { return pods_.at(name).node; }
  [[nodiscard]] std::string why(const std::string& name) {
    for (const Waiting& one : scheduler_->waiting(now())) {
      if (one.pod->name == name) return one.why;
    }
    return {};
  }
  /// How many pods there are in each of the domains of the key, the waiting in "".
  [[nodiscard]] std::map<std::string, int> domains(const std::string& key) const {
    std::map<std::string, int> found;
    for (const auto& [name, pod] : pods_) {
      ++found[pod.node.empty() ? "" : nodes_.at(pod.node).labels.at(key)];
    }
    return found;
  }
  [[nodiscard]] Scheduler& scheduler() { return *scheduler_; }

  int refuses = 0;  ///< so many bindings are conflicts

 private:
  [[nodiscard]] Now now() {
    mono_ += std::chrono::minutes(2);
    return {WallTime(std::chrono::hours(24 * 365 * 50)) + mono_, MonoTime(mono_)};
  }
  [[nodiscard]] std::string refusal(const Pod& pod, const std::string& node) const {
    oracle::There there{{}, {}, {}};
    for (const auto& [name, one] : nodes_) there.nodes.push_back(&one);
    for (const auto& [name, one] : pods_) {
      if (!one.node.empty()) there.pods.push_back({&one, &nodes_.at(one.node)});
    }
    return oracle::refusal(pod, nodes_.at(node), there);
  }

  std::map<std::string, Node> nodes_;
  std::map<std::string, Pod> pods_;
  std::optional<Scheduler> scheduler_;
  std::chrono::milliseconds mono_{1000};
};

using Domains = std::map<std::string, int>;

TEST(KubeSchedulerNeighbours, OneDecisionPutsNobodyTooNear) {
  Zones zones;
  for (int i = 0; i < 8; ++i) zones.add(fmt::format("web-{}", i), "web", apart("host"));
  zones.settle();
  const Domains six = {{"", 2}, {"a1", 1}, {"a2", 1}, {"b1", 1}, {"b2", 1}, {"c1", 1}, {"c2", 1}};
  EXPECT_EQ(zones.domains("host"), six);
  EXPECT_EQ(zones.why("web-7"),
            "0/6 nodes are available: 6 node(s) didn't match pod anti-affinity rules.");
  zones.gone("web-0");
  EXPECT_EQ(zones.domains("host").at(""), 1);
}

TEST(KubeSchedulerNeighbours, OneDecisionKeepsASetTogether) {
  Zones zones;
  for (int i = 0; i < 4; ++i) zones.add(fmt::format("web-{}", i), "web", near("zone"), "1");
  zones.settle();
  ASSERT_EQ(zones.domains("zone").size(), 1U);
  EXPECT_EQ(zones.domains("zone").begin()->second, 4);
  zones.come("more", "web", near("zone"), "1");
  EXPECT_TRUE(zones.why("more").contains("4 node(s) didn't match pod affinity rules"))
      << zones.why("more");
  for (int i = 0; i < 4; ++i) zones.gone(fmt::format("web-{}", i));
  EXPECT_NE(zones.where("more"), "") << "it is the first now";
}

TEST(KubeSchedulerNeighbours, OneDecisionSpreads) {
  Zones zones;
  for (int i = 0; i < 12; ++i) zones.add(fmt::format("web-{}", i), "web", spread("zone"));
  zones.settle();
  EXPECT_EQ(zones.domains("zone"), (Domains{{"a", 4}, {"b", 4}, {"c", 4}}));
  for (const char* name : {"a1", "a2"}) {
    Node node = zones.node(name);
    node.is_cordoned = true;
    zones.put(node);
  }
  for (const char* name : {"x", "y", "z"}) zones.come(name, "web", spread("zone"));
  EXPECT_EQ(zones.domains("zone"), (Domains{{"", 1}, {"a", 4}, {"b", 5}, {"c", 5}}));
  EXPECT_EQ(zones.why("z"),
            "0/6 nodes are available: 2 node(s) were unschedulable, 4 node(s) didn't match pod "
            "topology spread constraints.");
}

TEST(KubeSchedulerNeighbours, AGangIsApartAsAWhole) {
  struct Case {
    std::string spec;
    std::size_t size;
    bool starts;
  };
  for (const Case& each : {Case{apart("host"), 6, true},
                           Case{apart("host"), 7, false},
                           Case{near("zone"), 4, true},
                           Case{near("host"), 4, false},
                           Case{spread("zone"), 6, true}}) {
    Zones zones;
    const auto come = [&](std::size_t number) {
      Pod& pod = zones.add(fmt::format("web-{}", number), "web", each.spec, "1");
      pod.gang = GangWish{{GangSource::Pods, "default", "gang"}, each.size};
      zones.scheduler().put(pod);
    };
    for (std::size_t i = 0; i < each.size; ++i) come(i);
    zones.settle();
    const auto waiting = each.starts ? 0 : static_cast<int>(each.size);
    EXPECT_EQ(zones.domains("zone")[""], waiting) << each.spec << each.size;
  }
}

TEST(KubeSchedulerNeighbours, WhoWouldBeNearAGangThatDoesNotStartWaitsWithIt) {
  Zones zones;
  for (const char* name : {"web-0", "web-1", "web-2", "web-3"}) {
    Pod& pod = zones.add(name, "web", apart("zone"), "1");
    pod.gang = GangWish{{GangSource::Pods, "default", "gang"}, 4};
    zones.scheduler().put(pod);
  }
  zones.add("follower", "db", near("zone"), "1");
  zones.settle();
  EXPECT_EQ(zones.domains("zone"), (Domains{{"", 5}}));
}

TEST(KubeSchedulerNeighbours, WhatRunsKeepsOthersApartAlsoThoseThatWaitAlready) {
  Zones zones;
  std::map<std::string, std::string> full;  // by node
  for (const char* name : {"f1", "f2", "f3", "f4", "f5", "f6"}) {
    zones.come(name, "full", "{}", "2");
    full[zones.where(name)] = name;
  }
  zones.come("first", "web", "{}", "1");
  zones.come("second", "job", "{}", "1");
  zones.run("holder", "db", "a1", apart("zone"));
  EXPECT_TRUE(zones.why("first").contains("2 node(s) didn't satisfy existing pods anti-affinity"))
      << zones.why("first");
  zones.gone(full.at("a1"));
  EXPECT_EQ(zones.where("first"), "");
  EXPECT_EQ(zones.where("second"), "a1");
  zones.come("third", "job", "{}", "2");
  zones.gone(full.at("b1"));
  EXPECT_EQ(zones.where("first"), "b1") << "it has its place in the queue yet";
}

TEST(KubeSchedulerNeighbours, ABindingThatIsRefusedKeepsNobodyApart) {
  for (const auto& spec : {apart("zone"), spread("zone"), near("zone")}) {
    Zones zones;
    zones.refuses = 5;
    for (int i = 0; i < 3; ++i) zones.add(fmt::format("web-{}", i), "web", spec);
    zones.settle();
    EXPECT_FALSE(zones.domains("zone").contains("")) << spec;
    EXPECT_EQ(zones.domains("zone").size(), spec == near("zone") ? 1U : 3U) << spec;
  }
}

TEST(KubeSchedulerNeighbours, OneThatBeginsAnewKnowsTheNeighbours) {
  Zones zones;
  for (int i = 0; i < 4; ++i) zones.add(fmt::format("web-{}", i), "web", apart("zone"));
  zones.settle();
  EXPECT_EQ(zones.domains("zone"), (Domains{{"", 1}, {"a", 1}, {"b", 1}, {"c", 1}}));
  const std::string waits = zones.why("web-3");
  zones.restart();
  EXPECT_EQ(zones.why("web-3"), waits);
  zones.come("plain", "web");
  EXPECT_EQ(zones.where("plain"), "");
  zones.gone("web-1");
  EXPECT_NE(zones.where("web-3"), "");
  EXPECT_EQ(zones.where("plain"), "") << "which is kept from there, too";
}

TEST(KubeSchedulerNeighbours, LabelsOfPodsAndNodesMayChange) {
  Zones zones;
  zones.run("db", "db", "a1");
  zones.come("near", "job", near("zone"));
  EXPECT_EQ(zones.why("near"),
            "0/6 nodes are available: 6 node(s) didn't match pod affinity rules.");
  Pod web = zones.pod("db");
  web.labels["app"] = "web";
  zones.put(web);
  EXPECT_EQ(zones.node(zones.where("near")).labels.at("zone"), "a");
  zones.come("far", "job", near("zone"), "2");
  EXPECT_NE(zones.where("far"), "");
  zones.gone("far");
  for (const char* name : {"a1", "a2"}) {
    Node moved = zones.node(name);
    moved.labels["zone"] = "b";
    zones.put(moved);
  }
  zones.come("far", "job", apart("zone"));
  EXPECT_EQ(zones.node(zones.where("far")).labels.at("zone"), "c");
  zones.come("mine", "job", apart("zone"));
  Pod renamed = zones.add("waits", "web", "{}", "4");
  zones.settle();
  renamed.labels["app"] = "job";
  zones.put(renamed);
  EXPECT_EQ(zones.why("waits"), "0/6 nodes are available: 6 Insufficient nvidia.com/gpu.");
}

TEST(KubeSchedulerNeighbours, PodsThatMindNobodyAreOfOneClass) {
  Zones zones;
  zones.run("holder", "db", "a1", apart("zone"));
  for (int i = 0; i < 9; ++i)
    zones.add(fmt::format("job-{}", i), fmt::format("job-{}", i), "{}", "3");
  zones.add("web", "web", "{}", "3");
  zones.settle();
  const placement::Ledger& ledger = zones.scheduler().state().ledger();
  const std::size_t labels = ledger.node(*ledger.find("b1")).labels.size();
  EXPECT_EQ(labels, 2U);
}

}  // namespace
}  // namespace gflow::kube
