// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace gflow::kube {
namespace {

/// A cluster in memory: what is bound is so at once, and what was given out is counted apart from
/// the scheduler.
class Cluster {
 public:
  explicit Cluster(engine::Policy policy = {}) : policy_(std::move(policy)) { restart(); }

  void restart() {
    scheduler_.emplace("gflow", policy_);
    scheduler_->limit(quota_);
    for (const auto& [name, node] : nodes_) scheduler_->put(node);
    for (const auto& [name, pod] : pods_) scheduler_->put(pod);
    scheduler_->begin(now());
    settle();
  }

  void node(const std::string& name, int gpus, int pods = 110) {
    Node made;
    made.uid = made.name = name;
    made.labels = {{"gpu-type", "V100"}};
    made.allocatable = {{"cpu", 8000},
                        {"memory", std::int64_t{32} << 40},
                        {"pods", pods * 1000},
                        {"nvidia.com/gpu", gpus * 1000}};
    put(made);
  }
  void put(const Node& node) {
    nodes_[node.name] = node;
    scheduler_->put(node);
    settle();
  }
  /// And its pods.
  void node_gone(const std::string& name) {
    nodes_.erase(name);
    scheduler_->node_gone(name);
    for (const auto& [uid, pod] : std::map(pods_)) {
      if (pod.node != name) continue;
      pods_.erase(uid);
      scheduler_->pod_gone(uid);
    }
    settle();
  }
  void pod(const std::string& name,
           const std::string& gpu,
           std::int64_t cpus = 0,
           int priority = 0) {
    Pod made;
    made.priority = priority;
    made.uid = made.name = name;
    made.name_space = "default";
    made.scheduler = "gflow";
    made.gpu = gpu;
    made.created = WallTime(std::chrono::seconds(++time_));
    if (cpus > 0) made.requests["cpu"] = cpus;
    put(made);
  }
  void put(const Pod& pod) {
    pods_[pod.name] = pod;
    scheduler_->put(pod);
    settle();
  }
  void gone(std::string name) {  // which may be the key
    pods_.erase(name);
    scheduler_->pod_gone(name);
    settle();
  }
  void limit(const engine::GpuQuota& quota) {
    quota_ = quota;
    scheduler_->limit(quota);
    settle();
  }
  void pass() { settle(); }  ///< eight times the pace, in which nothing happens
  void gone_at_once(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      pods_.erase(name);
      scheduler_->pod_gone(name);
    }
    settle();
  }
  [[nodiscard]] std::string where(const std::string& name) const { return pods_.at(name).node; }
  [[nodiscard]] std::string why(const std::string& name) {
    for (const Waiting& one : scheduler_->waiting(now())) {
      if (one.pod->name == name) return one.why;
    }
    return {};
  }
  [[nodiscard]] Counts counts() const { return scheduler_->counts(); }
  /// As text, of each pod: "a n1 0,1".
  [[nodiscard]] std::map<std::string, std::string> all() const {
    std::map<std::string, std::string> found;
    for (const auto& [name, pod] : pods_) found[name] = pod.node + " " + pod.allocation;
    return found;
  }
  [[nodiscard]] const std::map<std::string, Pod>& pods() const { return pods_; }
  [[nodiscard]] const std::map<std::string, Node>& nodes() const { return nodes_; }

  /// No device has more than it is.
  void verify() {
    std::map<std::string, std::int64_t> used;
    for (const auto& [name, pod] : pods_) {
      if (pod.node.empty()) continue;
      ASSERT_TRUE(nodes_.contains(pod.node)) << name;
      if (pod.scheduler == "gflow") used[pod.node + " cpu"] += amount_of(pod.requests, "cpu");
      used[pod.node + " pods"] += 1000;
      ASSERT_LE(used[pod.node + " cpu"], 8000);
      ASSERT_LE(used[pod.node + " pods"], amount_of(nodes_[pod.node].allocatable, "pods"));
      const auto chosen = read_chosen(pod.allocation);
      if (!chosen) continue;
      for (const Chosen& one : chosen->devices) {
        auto& parts = used[pod.node + " " + std::to_string(one.index)];
        parts += one.share.parts;
        ASSERT_LE(parts, Share::kWholeParts) << name << " " << pod.allocation;
      }
    }
  }

  bool refuses_next = false;      ///< the next binding is a conflict
  std::set<std::string> guarded;  ///< pods that a disruption budget keeps
  std::vector<std::string> evicted;
  std::vector<std::string> unnamed;         ///< "a 1"
  std::chrono::milliseconds pace{120'000};  ///< of the clock, each time: no pause is still going on
  bool takes_its_time = false;              ///< what is evicted is told to end, and still there

 private:
  [[nodiscard]] Now now() {
    mono_ += pace;
    return {WallTime(std::chrono::hours(24 * 365 * 50)) + mono_, MonoTime(mono_)};
  }
  void settle() {
    for (int round = 0; round < 8; ++round) {
      const Decisions decisions = scheduler_->settle(now());
      ASSERT_EQ(scheduler_->check(), "");
      for (const Evict& evict : decisions.evictions) this->evict(evict.name);
      for (const Unnamed& one : decisions.unnamed) {
        unnamed.push_back(one.name + " " + std::to_string(one.gpus));
      }
      for (const Bind& bind : decisions.binds) {
        if (std::exchange(refuses_next, false)) {
          scheduler_->not_bound(bind.uid, "a conflict");
          continue;
        }
        Pod& pod = pods_.at(bind.name);
        ASSERT_EQ(pod.node, "") << bind.name << " is bound twice";
        pod.node = bind.node;
        pod.allocation = bind.allocation;
        scheduler_->bound(bind.uid);
        scheduler_->put(pod);
      }
      verify();
    }
  }

  void evict(const std::string& name) {
    if (guarded.contains(name)) return scheduler_->not_evicted(name, {true, "a budget"});
    evicted.push_back(name);
    if (takes_its_time) {
      pods_.at(name).is_deleted = true;
      return scheduler_->put(pods_.at(name));
    }
    pods_.erase(name);
    scheduler_->pod_gone(name);
  }

  engine::Policy policy_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, Pod> pods_;
  engine::GpuQuota quota_;
  std::optional<Scheduler> scheduler_;
  std::chrono::milliseconds mono_{1000};
  int time_ = 0;
};

TEST(KubeScheduler, PutsPodsWhereThereIsRoomAndSaysWhyOthersWait) {
  Cluster cluster;
  cluster.node("n1", 2);
  cluster.pod("a", "2(V100)");
  cluster.pod("b", "0.5");
  EXPECT_EQ(cluster.where("a"), "n1");
  EXPECT_EQ(cluster.where("b"), "");
  EXPECT_EQ(cluster.why("b"), "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
  cluster.gone("a");
  EXPECT_EQ(cluster.where("b"), "n1");
}

TEST(KubeScheduler, HoldsEachNamespaceToItsLimit) {
  Cluster cluster;
  cluster.limit({2, {{"vision", 0}}});
  cluster.node("n1", 4);
  for (const char* name : {"a", "b", "c"}) cluster.pod(name, "1");
  cluster.pod("d", "3");
  EXPECT_EQ(cluster.where("b"), "n1");
  EXPECT_EQ(cluster.why("c"),
            "1/1 nodes are available. Its namespace default holds 2 GPUs and may hold 2 at once.");
  EXPECT_EQ(cluster.why("d"), "It asks for 3 GPUs, and its namespace default may hold 2 at once.");
  const auto waiting = [&cluster](WaitsFor what) {
    return cluster.counts().waiting.at(static_cast<std::size_t>(what));
  };
  EXPECT_EQ(waiting(WaitsFor::Limit), 1U);
  EXPECT_EQ(waiting(WaitsFor::Request), 1U);
  Pod other = cluster.pods().at("a");
  other.uid = other.name = "e";
  other.name_space = "vision";
  other.node = other.allocation = "";
  other.gpu = "2";
  cluster.put(other);
  EXPECT_EQ(cluster.where("e"), "n1") << "the limit is of each namespace";
  cluster.restart();
  EXPECT_EQ(cluster.where("c"), "") << "what is bound counts after a restart, too";
  cluster.gone("e");
  EXPECT_EQ(cluster.where("c"), "");
  cluster.limit({3, {}});
  EXPECT_EQ(cluster.where("c"), "n1");
  cluster.limit({1, {}});
  EXPECT_EQ(cluster.where("a"), "n1") << "what runs goes on";
  for (const char* name : {"a", "b", "c"}) cluster.gone(name);
  EXPECT_EQ(cluster.where("d"), "");
  cluster.limit({});
  EXPECT_EQ(cluster.where("d"), "n1");
}

TEST(KubeScheduler, CountsWhatThereIs) {
  Cluster cluster;
  EXPECT_EQ(cluster.counts(), Counts());
  cluster.node("n1", 4);
  cluster.node("closed", 1);
  Node cordoned = cluster.nodes().at("closed");
  cordoned.is_cordoned = true;
  cluster.put(cordoned);
  Pod foreign;
  foreign.uid = foreign.name = "theirs";
  foreign.node = "n1";
  foreign.requests = {{"nvidia.com/gpu", 1000}};
  cluster.put(foreign);
  cluster.pod("half", "0.5");
  cluster.pod("two", "2");
  cluster.pod("later", "1");
  cluster.pod("never", "8");
  cluster.pod("mistake", "1.5");
  EXPECT_EQ(cluster.counts(), (Counts{2, {1, 1, 1, 0}, {25'000, 10'000, 10'000, 5'000}}));
}

TEST(KubeScheduler, GpusOfANodeThatTakesNoPodsAreNotFree) {
  struct Case {
    const char* key;
    const char* effect;
    bool is_free;
  };
  for (const Case& each : {Case{"node.kubernetes.io/not-ready", "NoExecute", false},
                           Case{"node.kubernetes.io/disk-pressure", "NoSchedule", false},
                           Case{"node.kubernetes.io/busy", "PreferNoSchedule", true},
                           Case{"nvidia.com/gpu", "NoSchedule", true}}) {
    Cluster cluster;
    cluster.node("n1", 2);
    Node node = cluster.nodes().at("n1");
    node.taints = {{each.key, "", each.effect}};
    cluster.put(node);
    const auto state = static_cast<std::size_t>(each.is_free ? GpuState::Free : GpuState::Closed);
    EXPECT_EQ(cluster.counts().gpus.at(state), 2 * Share::kWholeParts) << each.key << each.effect;
  }
}

TEST(KubeScheduler, OneDecisionPutsNoMoreOnANodeThanItTakes) {
  Cluster cluster;
  for (int i = 0; i < 5; ++i) cluster.pod("p" + std::to_string(i), "");
  cluster.node("n1", 0, 2);
  cluster.node("n2", 0, 2);
  int placed = 0;
  for (const auto& [name, pod] : cluster.pods()) placed += pod.node.empty() ? 0 : 1;
  EXPECT_EQ(placed, 4);
}

TEST(KubeScheduler, ABindingThatIsRefusedIsTriedAgain) {
  Cluster cluster;
  cluster.node("n1", 1);
  cluster.refuses_next = true;
  cluster.pod("a", "1");
  EXPECT_EQ(cluster.where("a"), "n1");
}

TEST(KubeScheduler, WhoGoesWithThePodThatItWaitedForLeavesTheRoomToOthers) {
  Cluster cluster;
  cluster.node("n1", 1);
  cluster.pod("a", "1");
  cluster.pod("b", "1");
  cluster.gone_at_once({"a", "b"});
  cluster.pod("c", "1");
  EXPECT_EQ(cluster.where("c"), "n1");
}

TEST(KubeScheduler, APodThatAsksForMoreThanThereCanBeLeavesNothing) {
  Cluster cluster;
  cluster.node("n1", 0);
  Pod greedy;
  greedy.uid = greedy.name = "greedy";
  greedy.node = "n1";
  greedy.requests = {{"cpu", INT64_MAX}, {"memory", INT64_MAX}};
  cluster.put(greedy);
  greedy.uid = greedy.name = "greedier";
  cluster.put(greedy);
  cluster.pod("a", "", 1);
  EXPECT_EQ(cluster.where("a"), "");
}

TEST(KubeScheduler, APodSeesNoMoreThanItHas) {
  Cluster cluster;
  cluster.node("n1", 1);
  cluster.pod("a", "-1");
  EXPECT_EQ(cluster.where("a"), "");
  EXPECT_TRUE(cluster.why("a").contains("a pod sees the GPUs that it has")) << cluster.why("a");
  cluster.restart();
  EXPECT_EQ(cluster.where("a"), "");
}

TEST(KubeScheduler, APodThatComesWithDevicesKeepsThem) {
  Cluster cluster;
  cluster.node("n1", 2);
  cluster.pod("a", "1");
  for (const auto* scheduler : {"gflow", "gflow-of-another-team"}) {
    Pod known = cluster.pods().at("a");
    known.scheduler = scheduler;
    Cluster other;
    other.node("n1", 2);
    other.put(known);
    other.pod("b", "1");
    EXPECT_EQ(other.where("b"), "n1");
    EXPECT_NE(other.pods().at("b").allocation, known.allocation);
    other.pod("c", "1");
    EXPECT_EQ(other.where("c"), "");
  }
}

TEST(KubeScheduler, ANodeThatListsItsDevicesHasThose) {
  const auto listed = [](int index, const std::string& model, const std::string& trouble = "") {
    return ListedDevice{.resource = "nvidia.com/gpu",
                        .index = index,
                        .uuid = "GPU-" + std::to_string(index),
                        .model = model,
                        .memory = Memory::gib(40),
                        .trouble = trouble};
  };
  Node node;
  node.uid = node.name = "n1";
  node.labels = {{"gpu-type", "V100"}};
  node.allocatable = {{"cpu", 8000}, {"pods", 110'000}, {"nvidia.com/gpu", 3000}};
  node.inventory = {
      listed(0, "A100"), listed(1, "A100", "it is hot"), listed(2, "A100"), listed(5, "H100")};
  Cluster cluster;
  cluster.put(node);
  cluster.pod("v", "1(V100)");
  EXPECT_EQ(cluster.where("v"), "") << "the label says what it does not have";
  cluster.pod("h", "1(H100)");
  EXPECT_TRUE(cluster.pods().at("h").allocation.contains(R"("index":5)"));
  cluster.pod("half", "0.5(A100)");
  EXPECT_TRUE(cluster.pods().at("half").allocation.contains(R"("memory_bytes":21474836480)"))
      << cluster.pods().at("half").allocation;
  cluster.pod("two", "2");
  EXPECT_EQ(cluster.where("two"), "") << "one is hot, and one is shared";
  // Its kubelet offers none: what runs keeps its own, and nothing new starts.
  node.allocatable["nvidia.com/gpu"] = 0;
  cluster.put(node);
  cluster.pod("one", "1");
  EXPECT_EQ(cluster.where("one"), "");
  EXPECT_EQ(cluster.where("h"), "n1");
  node.allocatable["nvidia.com/gpu"] = 4000;
  node.inventory[1].trouble = "";
  cluster.put(node);
  EXPECT_EQ(cluster.where("two"), "n1");
  EXPECT_TRUE(cluster.pods().at("two").allocation.contains(R"("index":1)"));
  // It is made anew, and what lists its devices has not seen that yet.
  Node other;
  other.uid = other.name = "n2";
  other.allocatable = node.allocatable;
  other.allocatable["gflow/allocation"] = 256'000;
  cluster.put(other);
  EXPECT_EQ(cluster.where("one"), "");
  other.inventory = {listed(1, "A100")};
  cluster.put(other);
  EXPECT_EQ(cluster.where("one"), "n2");
  EXPECT_TRUE(cluster.pods().at("one").allocation.contains(R"("index":1)"));
}

TEST(KubeScheduler, PodsOfOthersHaveWhatTheySayAndWhatElseTheyAskFor) {
  struct Case {
    std::string allocation;  ///< of each of two pods that ask for a GPU of three
    std::string next;
  };
  const std::string last =
      R"({"node":"n1","devices":[{"resource":"nvidia.com/gpu","index":2,"share_parts":10000}]})";
  const std::vector<Case> cases = {
      {last, ""}, {"", last}, {"", ""}, {R"({"node":"n1","devices":[]})", ""}};
  for (const Case& each : cases) {
    Cluster cluster;
    cluster.node("n1", 3);
    Pod pod;
    pod.node = "n1";
    pod.requests["nvidia.com/gpu"] = 1000;
    for (const auto& [name, allocation] : {std::pair{"x", each.allocation}, {"y", each.next}}) {
      pod.uid = pod.name = name;
      pod.allocation = allocation;
      cluster.put(pod);
    }
    cluster.pod("a", "2");
    EXPECT_EQ(cluster.where("a"), "") << each.allocation << each.next;
    cluster.pod("b", "1");
    EXPECT_EQ(cluster.where("b"), "n1") << each.allocation << each.next;
  }
}

TEST(KubeScheduler, APodThatDoesNotSayWhatItHasHoldsWhatItAsksFor) {
  for (const auto* gpu : {"1", "0.5"}) {
    for (const auto* allocation : {"", "nonsense", R"({"node":"n1","devices":[]})"}) {
      Cluster cluster;
      cluster.node("n1", 2);
      cluster.pod("a", "1");
      cluster.pod("b", gpu);
      Pod spoilt = cluster.pods().at("b");
      spoilt.allocation = allocation;
      cluster.put(spoilt);
      EXPECT_EQ(cluster.unnamed, std::vector<std::string>{}) << "what it was given is known";
      cluster.restart();
      EXPECT_EQ(cluster.unnamed, std::vector<std::string>{"b 1"});
      cluster.pod("c", gpu);
      EXPECT_EQ(cluster.where("c"), "") << gpu << allocation;
      cluster.gone("b");
      EXPECT_EQ(cluster.where("c"), "n1") << gpu << allocation;
    }
  }
}

TEST(KubeScheduler, APodThatDoesNotSayWhichPartItHasLeavesNoneOfIts) {
  Cluster cluster;
  cluster.node("n1", 1);
  cluster.pod("a", "0.5");
  cluster.pod("b", "0.5");
  Pod spoilt = cluster.pods().at("b");
  spoilt.allocation = "";
  cluster.put(spoilt);
  cluster.restart();
  cluster.pod("c", "0.5");
  EXPECT_EQ(cluster.where("c"), "");
}

TEST(KubeScheduler, APodThatComesOnANodeWithoutSayingWhatItHasHoldsWhatItAsksFor) {
  Cluster cluster;
  cluster.node("n1", 2);
  Pod pod;
  pod.uid = pod.name = "came";
  pod.scheduler = "gflow";
  pod.node = "n1";
  pod.gpu = "1";
  cluster.put(pod);
  EXPECT_EQ(cluster.unnamed, std::vector<std::string>{"came 1"});
  cluster.pod("a", "2");
  EXPECT_EQ(cluster.where("a"), "");
  cluster.pod("b", "1");
  EXPECT_EQ(cluster.where("b"), "n1");
}

TEST(KubeScheduler, APodThatSaysItHasWhatAnotherHasHoldsAnother) {
  Scheduler scheduler("gflow", engine::Policy{});
  Node node;
  node.uid = node.name = "n1";
  node.allocatable = {{"cpu", 8000}, {"pods", 110'000}, {"nvidia.com/gpu", 2000}};
  scheduler.put(node);
  Pod pod;
  pod.scheduler = "gflow";
  pod.gpu = "1";
  pod.node = "n1";
  pod.allocation =
      R"({"node":"n1","devices":[{"resource":"nvidia.com/gpu","index":0,"share_parts":10000}]})";
  for (const auto* name : {"a", "b"}) {
    pod.uid = pod.name = name;
    scheduler.put(pod);
  }
  pod.uid = pod.name = "c";
  pod.node = pod.allocation = "";
  scheduler.put(pod);
  const Now now{WallTime(std::chrono::hours(24)), MonoTime(std::chrono::seconds(1))};
  scheduler.begin(now);
  const Decisions decisions = scheduler.settle(now);
  EXPECT_TRUE(decisions.binds.empty());
  EXPECT_EQ(decisions.unnamed.size(), 1);
}

TEST(KubeScheduler, WhatARefusedBindingHadIsForWhoComesMeanwhile) {
  Scheduler scheduler("gflow", engine::Policy{});
  Node node;
  node.uid = node.name = "n1";
  node.allocatable = {{"cpu", 8000}, {"pods", 110'000}, {"nvidia.com/gpu", 1000}};
  scheduler.put(node);
  Pod pod;
  pod.uid = pod.name = "a";
  pod.scheduler = "gflow";
  pod.gpu = "1";
  scheduler.put(pod);
  const auto at = [](int second) {
    return Now{WallTime(std::chrono::hours(24)), MonoTime(std::chrono::seconds(second))};
  };
  scheduler.begin(at(1));
  ASSERT_EQ(scheduler.settle(at(1)).binds.size(), 1U);
  scheduler.not_bound("a", "a conflict");
  Pod other;
  other.uid = other.name = "theirs";
  other.node = "n1";
  other.requests = {{"nvidia.com/gpu", 1000}};
  scheduler.put(other);
  for (const int second : {2, 20}) EXPECT_TRUE(scheduler.settle(at(second)).binds.empty());
}

TEST(KubeScheduler, WhatAPodWasGivenIsNoLessForWhatItsAnnotationSaysLater) {
  Cluster cluster;
  cluster.node("n1", 1);
  cluster.pod("a", "1");
  Pod changed = cluster.pods().at("a");
  changed.gpu = "0.1";
  cluster.put(changed);
  cluster.restart();
  cluster.pod("b", "0.9");
  EXPECT_EQ(cluster.where("b"), "");
}

TEST(KubeScheduler, GpusOfContainersCountByTheirResource) {
  Cluster cluster;
  cluster.node("n1", 1);
  Pod asks;
  asks.uid = asks.name = "asks";
  asks.scheduler = "gflow";
  asks.gpu = "1(nvidia)";
  asks.requests["amd.com/gpu"] = 1000;
  cluster.put(asks);
  EXPECT_EQ(cluster.where("asks"), "");
}

TEST(KubeScheduler, LowerPrioritiesMakeRoomLastComersFirst) {
  Cluster cluster;
  cluster.node("n1", 2);
  cluster.pod("low", "1");
  cluster.pod("lower", "1");
  cluster.pod("equal", "1");
  EXPECT_TRUE(cluster.evicted.empty());
  cluster.pod("vip", "1", 0, 1000);
  EXPECT_EQ(cluster.evicted, std::vector<std::string>{"lower"});
  EXPECT_EQ(cluster.where("vip"), "n1");
  EXPECT_EQ(cluster.where("equal"), "");
}

TEST(KubeScheduler, WhoABudgetKeepsStaysAndAnotherMakesRoom) {
  Cluster cluster;
  cluster.node("n1", 2);
  cluster.pod("a", "1");
  cluster.pod("b", "1");
  cluster.guarded = {"b"};
  cluster.pod("vip", "1", 0, 1000);
  EXPECT_EQ(cluster.evicted, std::vector<std::string>{"a"});
  EXPECT_EQ(cluster.where("vip"), "n1");
  cluster.guarded.clear();
  cluster.pod("next", "1", 0, 1000);  // minutes later
  EXPECT_EQ(cluster.evicted, (std::vector<std::string>{"a", "b"}));
}

TEST(KubeScheduler, WhoAsksForACountIsInTheSameQueue) {
  Cluster cluster;
  cluster.node("n1", 4);
  const auto by_count = [&](const std::string& name, int gpus, int priority) {
    Pod pod;
    pod.uid = pod.name = name;
    pod.scheduler = "gflow";
    pod.created = WallTime(std::chrono::seconds(cluster.pods().size() + 1));
    pod.requests["nvidia.com/gpu"] = gpus * 1000;
    pod.priority = priority;
    pod.is_sparing = true;
    cluster.put(pod);
  };
  for (const auto* name : {"a", "b", "c", "d"}) by_count(name, 1, 0);
  by_count("low", 1, 0);
  by_count("big", 4, 1000);
  cluster.gone("a");
  EXPECT_EQ(cluster.where("low"), "") << "what is free is kept for who is ahead";
  for (const auto* name : {"b", "c", "d"}) cluster.gone(name);
  EXPECT_EQ(cluster.where("big"), "n1");
}

TEST(KubeScheduler, WhoLosesTheRoomThatWasMadeHasOtherRoomMadeLater) {
  Cluster cluster;
  cluster.node("n1", 1);
  cluster.pod("a", "1");
  cluster.node("n2", 1);
  cluster.pod("b", "1");
  cluster.pace = std::chrono::seconds(5);
  cluster.takes_its_time = true;
  cluster.pod("vip", "1", 0, 1000);
  cluster.node_gone("n2");
  ASSERT_EQ(cluster.evicted, std::vector<std::string>{"b"});
  cluster.pace = std::chrono::seconds(120);
  cluster.pass();
  EXPECT_EQ(cluster.evicted, (std::vector<std::string>{"b", "a"}));
}

TEST(KubeScheduler, WhoEvictsNobodyWaits) {
  Cluster cluster;
  cluster.node("n1", 1);
  cluster.pod("low", "1");
  Pod polite;
  polite.uid = polite.name = "polite";
  polite.scheduler = "gflow";
  polite.gpu = "1";
  polite.priority = 1000;
  polite.is_sparing = true;
  cluster.put(polite);
  cluster.restart();
  EXPECT_TRUE(cluster.evicted.empty());
  cluster.gone("low");
  EXPECT_EQ(cluster.where("polite"), "n1");
}

TEST(KubeScheduler, WhatIsLeavingAlreadyIsRoomEnough) {
  for (const bool is_restarted : {false, true}) {
    Cluster cluster;
    cluster.node("n1", 2);
    cluster.pod("a", "1");
    cluster.pod("b", "1");
    Pod deleted = cluster.pods().at("a");  // by its owner, not the one that would be chosen
    deleted.is_deleted = true;
    cluster.put(deleted);
    if (is_restarted) cluster.restart();
    cluster.pod("vip", "1", 0, 1000);
    EXPECT_TRUE(cluster.evicted.empty()) << is_restarted;
    EXPECT_TRUE(cluster.why("vip").contains("It waits for default/a to leave"))
        << cluster.why("vip");
    cluster.gone("a");
    EXPECT_EQ(cluster.where("vip"), "n1");
  }
}

/// What made a pod makes it anew as soon as it is told to leave, and it is still there then: the
/// new one takes nothing of the room that the old one is about to leave to who waits for it.
TEST(KubeScheduler, WhoWaitsForOneThatIsLeavingHasItsRoom) {
  engine::Policy policy;
  for (const bool preempts : {true, false}) {
    policy.preempt = preempts;
    for (const bool is_restarted : {false, true}) {
      for (const char* leaves : {"a", "b"}) {
        const std::string what =
            fmt::format("{} leaves, preempts {}, restarted {}", leaves, preempts, is_restarted);
        Cluster cluster(policy);
        cluster.pace = std::chrono::milliseconds(10);
        cluster.node("n1", 2);
        cluster.pod("a", "1");
        cluster.pod("filler", "1");
        cluster.node("n2", 2);
        cluster.pod("b", "1");
        cluster.gone("filler");
        ASSERT_NE(cluster.where("a"), cluster.where("b"));
        const std::string room = cluster.where(leaves);
        cluster.pod("large", "2");
        Pod deleted = cluster.pods().at(leaves);
        deleted.is_deleted = true;
        cluster.put(deleted);
        if (is_restarted) cluster.restart();
        cluster.pod("anew", "1");
        EXPECT_NE(cluster.where("anew"), room) << what;
        cluster.gone(leaves);
        EXPECT_EQ(cluster.where("large"), room) << what;
        EXPECT_NE(cluster.where("anew"), "") << what;
      }
    }
  }
}

TEST(KubeScheduler, OneThatBeginsAnewEvictsNobodyTwiceForOnePod) {
  Cluster cluster;
  cluster.node("n1", 2);
  cluster.pod("a", "1");
  cluster.pod("b", "1");
  cluster.takes_its_time = true;
  cluster.pod("vip", "1", 0, 1000);
  cluster.restart();
  EXPECT_EQ(cluster.evicted, std::vector<std::string>{"b"});
  cluster.gone("b");
  EXPECT_EQ(cluster.where("vip"), "n1");
}

TEST(KubeScheduler, OneThatBeginsAnewGivesNothingOutTwice) {
  std::mt19937 random(12);
  Cluster cluster;
  for (int i = 0; i < 4; ++i) cluster.node("n" + std::to_string(i), 4, 6);
  const std::vector<std::string> wants = {"1", "2", "0.5", "0.25", "", "2(V100)", "4"};
  int made = 0;
  for (int turn = 0; turn < 150; ++turn) {
    const auto kind = random() % 10;
    if (kind < 6) {
      cluster.pod("p" + std::to_string(made++),
                  wants[random() % wants.size()],
                  static_cast<std::int64_t>(random() % 2000),
                  random() % 8 == 0 ? 1000 : 0);
    } else if (kind < 9 && !cluster.pods().empty()) {
      cluster.gone(
          std::next(cluster.pods().begin(), static_cast<long>(random() % cluster.pods().size()))
              ->first);
    } else if (kind == 9) {
      const auto before = cluster.all();
      cluster.restart();
      for (const auto& [name, where] : before) {
        if (where == " ") continue;
        EXPECT_EQ(cluster.all().at(name), where) << name;
      }
    }
    if (random() % 8 == 0) cluster.refuses_next = true;
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace gflow::kube
