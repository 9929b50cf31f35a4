// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kube/scheduler.h"

/// Pods with claims, where several are decided on at once.
namespace gflow::kube {
namespace {

using Names = std::set<std::string>;

/// A cluster in memory in which claims are bound, and pods after them, when a test says so.
class KubeSchedulerVolumes : public testing::Test {
 protected:
  void begin(bool preempts = false) {
    engine::Policy policy;
    policy.preempt = preempts;
    scheduler.emplace("gflow", policy);
    StorageClass local;
    local.uid = local.name = "local";
    local.waits = true;
    scheduler->volumes().put(local);
    scheduler->volumes().know();
    for (const auto& [name, one] : nodes) scheduler->put(one);
    for (const auto& [name, one] : volumes) scheduler->volumes().put(one);
    for (const auto& [name, one] : claims) scheduler->volumes().put(one);
    for (const auto& [name, one] : pods) scheduler->put(one);
    scheduler->begin(now());
  }

  void node(const std::string& name, int gpus) {
    Node made;
    made.uid = made.name = name;
    made.labels = {{"kubernetes.io/hostname", name}};
    made.allocatable = {{"cpu", 64000},
                        {"memory", std::int64_t{32} << 40},
                        {"pods", 110 * 1000},
                        {"nvidia.com/gpu", gpus * 1000}};
    nodes[name] = made;
  }
  void volume(const std::string& name, const std::string& node) {
    Volume made;
    made.uid = made.name = name;
    made.version = "1";
    made.storage_class = "local";
    made.modes = {"ReadWriteOnce"};
    made.size = 10;
    made.is_available = true;
    made.affinity = {{Match{"kubernetes.io/hostname", "In", {node}}}};
    volumes[name] = made;
    if (scheduler) scheduler->volumes().put(made);
  }
  void claim(const std::string& name) {
    VolumeClaim made;
    made.uid = made.name = name;
    made.name_space = "default";
    made.storage_class = "local";
    made.modes = {"ReadWriteOnce"};
    made.size = 1;
    claims[name] = made;
    if (scheduler) scheduler->volumes().put(made);
  }
  Pod pod(const std::string& name, const std::vector<std::string>& with, int gpus = 1) {
    Pod made;
    made.uid = made.name = name;
    made.name_space = "default";
    made.scheduler = "gflow";
    made.gpu = std::to_string(gpus);
    made.created = WallTime(std::chrono::seconds(++made_));
    for (const std::string& one : with) made.claims.push_back({one});
    return made;
  }
  void come(const Pod& pod) {
    pods[pod.uid] = pod;
    if (scheduler) scheduler->put(pod);
  }
  /// Who is bound, and where; each volume is one pod's.
  std::map<std::string, std::string> settle() {
    std::map<std::string, std::string> bound;
    const Decisions decided = scheduler->settle(now());
    for (const Evict& one : decided.evictions) evicted.insert(one.name);
    for (const Bind& bind : decided.binds) {
      bound[bind.name] = bind.node;
      for (const ClaimStep& step : bind.claims) {
        EXPECT_EQ(volumes.at(step.volume).affinity->front().front().values.front(), bind.node);
        EXPECT_TRUE(used.insert(step.volume).second) << step.volume << " is another's";
        keep(step);
      }
      Pod& there = pods.at(bind.uid);
      there.node = bind.node;
      there.allocation = bind.allocation;
      scheduler->bound(bind.uid);
      scheduler->put(there);
    }
    EXPECT_EQ(scheduler->check(), "");
    return bound;
  }
  /// What the cluster says of a claim that was bound.
  void keep(const ClaimStep& step) {
    Volume& of = volumes.at(step.volume);
    of.claim = "default/" + step.name;
    of.claim_uid = step.uid;
    of.is_available = false;
    scheduler->volumes().put(of);
    VolumeClaim& its = claims.at(step.name);
    its.volume = step.volume;
    its.is_bound = true;
    scheduler->volumes().put(its);
  }
  std::string why(const std::string& name) {
    for (const Waiting& one : scheduler->waiting(now())) {
      if (one.pod->name == name) return one.why;
    }
    return {};
  }
  /// The classes that some node admits.
  Names classes() {
    Names found;
    for (const Machine& machine : scheduler->machines()) {
      for (const Label& label : machine.labels) found.insert(label.key);
    }
    return found;
  }
  Now now() {
    mono += std::chrono::minutes(2);
    return {WallTime(std::chrono::hours(24 * 365 * 50)) + mono, MonoTime(mono)};
  }

  std::optional<Scheduler> scheduler;
  std::map<std::string, Node> nodes;
  std::map<std::string, Volume> volumes;
  std::map<std::string, VolumeClaim> claims;
  std::map<std::string, Pod> pods;
  Names used;  ///< volumes
  Names evicted;
  std::chrono::milliseconds mono{1000};

 private:
  int made_ = 0;
};

using Places = std::map<std::string, std::string>;

TEST_F(KubeSchedulerVolumes, APodGoesWhereThereIsEnoughForAllItsClaims) {
  node("few", 2);
  node("many", 2);
  volume("v0", "few");
  volume("v1", "many");
  volume("v2", "many");
  for (const char* name : {"data", "log"}) claim(name);
  // The engine would choose the one that is half full already.
  Pod other = pod("other", {});
  other.wishes.node_selector = {{"kubernetes.io/hostname", "few"}};
  come(other);
  begin();
  EXPECT_EQ(settle(), (Places{{"other", "few"}}));
  come(pod("train", {"data", "log"}));
  EXPECT_EQ(settle(), (Places{{"train", "many"}}));
}

TEST_F(KubeSchedulerVolumes, NobodyIsEvictedForOneWhoseVolumesAreTooFew) {
  node("n1", 1);
  volume("v0", "n1");
  for (const char* name : {"data", "log"}) claim(name);
  come(pod("low", {}));
  begin(true);
  EXPECT_EQ(settle(), (Places{{"low", "n1"}}));
  Pod urgent = pod("urgent", {"data", "log"});
  urgent.priority = 1000;
  come(urgent);
  EXPECT_EQ(settle(), Places{});
  EXPECT_EQ(evicted, Names{});
  EXPECT_TRUE(why("urgent").contains("1 node(s) didn't find available persistent volumes to bind"))
      << why("urgent");
  volume("v1", "n1");
  (void)settle();
  EXPECT_EQ(evicted, Names{"low"});
}

TEST_F(KubeSchedulerVolumes, ThoseThatAreDecidedOnAtOnceHaveAVolumeEach) {
  for (int i = 0; i < 4; ++i) {
    node(fmt::format("n{}", i), 4);
    volume(fmt::format("v{}", i), fmt::format("n{}", i));
    claim(fmt::format("c{}", i));
    come(pod(fmt::format("p{}", i), {fmt::format("c{}", i)}));
  }
  begin();
  EXPECT_EQ(settle().size(), 4U);
}

TEST_F(KubeSchedulerVolumes, AGangStartsTogetherWhereverTheVolumesAre) {
  for (const char* name : {"n0", "n1"}) node(name, 2);
  volume("v0", "n0");
  begin();
  for (const char* name : {"a", "b"}) {
    claim(name);
    Pod member = pod(name, {name});
    member.gang = GangWish{{GangSource::Pods, "default", "train"}, 2};
    come(member);
  }
  EXPECT_EQ(settle(), Places{}) << "there is one volume for two";
  EXPECT_EQ(settle(), Places{});
  EXPECT_EQ(scheduler->wake(), std::nullopt) << "it is not tried again while nothing changes";
  claim("c");
  come(pod("alone", {"c"}));
  EXPECT_EQ(settle(), (Places{{"alone", "n0"}})) << "what the gang cannot use is another's";
  volume("v1", "n1");
  EXPECT_EQ(settle(), Places{});
  volume("v2", "n0");
  EXPECT_EQ(settle(), (Places{{"a", "n0"}, {"b", "n1"}}));
}

TEST_F(KubeSchedulerVolumes, AVolumeThatIsTakenIsNewsForItsNodeOnly) {
  for (int i = 0; i < 8; ++i) {
    node(fmt::format("n{}", i), 1);
    volume(fmt::format("v{}", i), fmt::format("n{}", i));
  }
  for (const char* name : {"a", "b", "c"}) claim(name);
  Pod waits = pod("a", {"a"}, 2);  // there is no such node
  come(waits);
  begin();
  (void)settle();
  const Names before = classes();
  come(pod("b", {"b"}));
  EXPECT_EQ(settle().size(), 1U);
  (void)settle();
  EXPECT_EQ(classes(), before) << "who waits is what it was, but for one node";
  Pod made = pod("c", {"c"}, 1);
  come(made);
  EXPECT_EQ(settle().size(), 1U);
}

/// Claims of pods that come and go, some of them in gangs, over nodes with some volumes.
class KubeSchedulerVolumesStorm : public KubeSchedulerVolumes,
                                  public testing::WithParamInterface<int> {};

TEST_P(KubeSchedulerVolumesStorm, EachVolumeIsOnePodsAndGangsAreWhole) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto roll = [&random](int sides) { return static_cast<int>(random() % unsigned(sides)); };
  for (int i = 0; i < 5; ++i) node(fmt::format("n{}", i), 1 + roll(4));
  for (int i = 0; i < 14; ++i) volume(fmt::format("v{}", i), fmt::format("n{}", roll(5)));
  begin();
  std::map<std::string, std::size_t> gangs;  ///< their sizes, by name
  for (int turn = 0; turn < 40; ++turn) {
    const std::size_t size = roll(3) == 0 ? 2 + static_cast<std::size_t>(roll(2)) : 1;
    const std::string gang = fmt::format("g{}", turn);
    if (size > 1) gangs[gang] = size;
    for (std::size_t i = 0; i < size; ++i) {
      const std::string name = fmt::format("p{}-{}", turn, i);
      std::vector<std::string> with;
      for (int j = roll(3); j > 0; --j) {
        with.push_back(fmt::format("{}-{}", name, j));
        claim(with.back());
      }
      Pod made = pod(name, with);
      if (size > 1) made.gang = GangWish{{GangSource::Pods, "default", gang}, size};
      come(made);
    }
    const auto bound = settle();
    std::map<std::string, std::size_t> started;
    for (const auto& [name, where] : bound) {
      if (const auto& gang_of = pods.at(name).gang) ++started[gang_of->name.name];
    }
    for (const auto& [name, count] : started) EXPECT_EQ(count, gangs.at(name)) << name;
    if (roll(2) == 0) continue;
    std::vector<std::string> running;
    for (const auto& [name, one] : pods) {
      if (!one.node.empty() && !one.gang) running.push_back(name);
    }
    if (running.empty()) continue;
    const std::string gone = running[static_cast<std::size_t>(roll(int(running.size())))];
    for (const PodClaim& one : Pod(pods.at(gone)).claims) {  // its volume is wiped, and another
      const std::string wiped = claims.at(one.name).volume;
      scheduler->volumes().claim_gone(one.name);
      claims.erase(one.name);
      used.erase(wiped);
      volume(wiped, volumes.at(wiped).affinity->front().front().values.front());
    }
    pods.erase(gone);
    scheduler->pod_gone(gone);
  }
  // Who waits though it may go somewhere, and would delay nobody, is one that was missed.
  (void)settle();
  for (const auto& [name, one] : pods) {
    if (!one.node.empty() || one.gang) continue;
    const std::string told = why(name);
    EXPECT_TRUE(told.starts_with("0/5 nodes") || told.contains("It would delay")) << name << told;
  }
}

INSTANTIATE_TEST_SUITE_P(All, KubeSchedulerVolumesStorm, testing::Range(0, 20));

}  // namespace
}  // namespace gflow::kube
