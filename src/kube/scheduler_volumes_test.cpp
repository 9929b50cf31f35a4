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
  /// Who is decided on, and where; claims are bound at once, each volume as one pod's.
  std::map<std::string, std::string> settle() {
    std::map<std::string, std::string> found;
    while (true) {
      const Decisions decided = scheduler->settle(now());
      EXPECT_EQ(scheduler->check(), "");
      for (const Evict& one : decided.evictions) evicted.insert(one.name);
      if (decided.binds.empty()) return found;
      for (const Bind& bind : decided.binds) {
        found[bind.name] = bind.node;
        if (bind.claims.empty()) {
          bind_pod(bind);
          continue;
        }
        for (const ClaimStep& step : bind.claims) {
          EXPECT_EQ(volumes.at(step.volume).affinity->front().front().values.front(), bind.node);
          EXPECT_TRUE(used.insert(step.volume).second) << step.volume << " is another's";
          keep(step);
        }
        scheduler->claims_written(bind.uid);
      }
    }
  }
  void bind_pod(const Bind& bind) {
    Pod& there = pods.at(bind.uid);
    there.node = bind.node;
    there.allocation = bind.allocation;
    scheduler->bound(bind.uid);
    scheduler->put(there);
  }
  /// One decision, of which nothing came yet.
  Bind decide() {
    const Decisions decided = scheduler->settle(now());
    EXPECT_EQ(decided.binds.size(), 1U);
    return decided.binds.empty() ? Bind{} : decided.binds.front();
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

/// A pod that has its node and waits for a volume to be made.
class KubeSchedulerClaims : public KubeSchedulerVolumes {
 protected:
  KubeSchedulerClaims() {
    node("n1", 1);
    begin();
    StorageClass made;
    made.uid = made.name = "made";
    made.waits = made.makes_volumes = true;
    scheduler->volumes().put(made);
    claim("data");
    claims["data"].storage_class = "made";
    scheduler->volumes().put(claims["data"]);
    come(pod("train", {"data"}));
    first = decide();
    EXPECT_EQ(first.claims, (std::vector<ClaimStep>{{"data", "data", "", "", ""}}));
    EXPECT_EQ(why("train"),
              "It has its node n1, and waits for its PersistentVolumeClaims to be bound.");
  }
  void select(const std::string& node) {
    claims["data"].selected_node = node;
    scheduler->volumes().put(claims["data"]);
  }
  void make_volume(const std::string& where) {
    volume("disk", where);
    claims["data"].volume = "disk";
    claims["data"].is_bound = true;
    scheduler->volumes().put(claims["data"]);
  }
  bool decides_nothing() { return scheduler->settle(now()).binds.empty(); }

  Bind first;
};

TEST_F(KubeSchedulerClaims, IsBoundOnceTheyAre) {
  EXPECT_TRUE(decides_nothing()) << "nothing is written yet";
  scheduler->claims_written("train");
  EXPECT_TRUE(decides_nothing()) << "which is not told yet";
  select("n1");
  EXPECT_TRUE(decides_nothing());
  make_volume("n1");
  const Bind bind = decide();
  EXPECT_TRUE(bind.claims.empty());
  EXPECT_EQ(bind.node + " " + bind.allocation, first.node + " " + first.allocation);
  bind_pod(bind);
  EXPECT_TRUE(decides_nothing());
}

TEST_F(KubeSchedulerClaims, MayBeBoundBeforeItIsToldThatTheyWereWritten) {
  select("n1");
  make_volume("n1");
  EXPECT_TRUE(decides_nothing());
  scheduler->claims_written("train");
  EXPECT_TRUE(decide().claims.empty());
}

TEST_F(KubeSchedulerClaims, AreAskedForAgainWhereNoneCouldBeMade) {
  scheduler->claims_written("train");
  select("n1");
  EXPECT_TRUE(decides_nothing());
  select("");
  EXPECT_TRUE(decides_nothing());
  EXPECT_EQ(scheduler->wake(), MonoTime(mono)) << "it goes on at once";
  EXPECT_TRUE(decides_nothing()) << "after a pause";
  EXPECT_EQ(decide().claims.size(), 1U);
  EXPECT_TRUE(why("train").contains("The try before failed: no volume was made for claim data"));
}

TEST_F(KubeSchedulerClaims, AreNotWaitedForForEver) {
  scheduler->claims_written("train");
  (void)scheduler->settle(now());
  ASSERT_TRUE(scheduler->wake());
  mono = std::chrono::milliseconds(scheduler->wake()->time_since_epoch());
  EXPECT_TRUE(decides_nothing());
  EXPECT_TRUE(decides_nothing());
  EXPECT_EQ(decide().claims.size(), 1U);
  EXPECT_TRUE(why("train").contains("were not bound in ten minutes")) << why("train");
}

TEST_F(KubeSchedulerClaims, ThatHaveAVolumeElsewhereAreNoUse) {
  scheduler->claims_written("train");
  make_volume("n2");
  EXPECT_TRUE(decides_nothing());
  EXPECT_TRUE(decides_nothing());
  EXPECT_TRUE(why("train").contains("didn't match PersistentVolume's node affinity"))
      << why("train");
}

TEST_F(KubeSchedulerClaims, ThatGoTakeNothingWithThem) {
  scheduler->claims_written("train");
  scheduler->volumes().claim_gone("data");
  EXPECT_TRUE(decides_nothing());
  EXPECT_TRUE(decides_nothing());
  EXPECT_TRUE(why("train").contains("persistentvolumeclaim \"data\" not found")) << why("train");
  come(pod("other", {}));
  EXPECT_EQ(decide().name, "other");
}

TEST_F(KubeSchedulerClaims, AreAskedForAnewWhereItsNodeGoes) {
  scheduler->claims_written("train");
  select("n1");
  scheduler->node_gone("n1");
  EXPECT_TRUE(decides_nothing());
  node("n2", 1);
  scheduler->put(nodes["n2"]);
  select("");
  (void)scheduler->settle(now());
  (void)scheduler->settle(now());
  EXPECT_EQ(scheduler->check(), "");
  EXPECT_TRUE(why("train").starts_with("It has its node n2")) << why("train");
}

TEST_F(KubeSchedulerClaims, OfOneThatIsAnotherNowAreAskedForAnew) {
  scheduler->claims_written("train");
  pods["train"].gpu = "2";
  scheduler->put(pods["train"]);
  EXPECT_TRUE(decides_nothing());
  come(pod("other", {}));
  EXPECT_EQ(decide().name, "other");
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
