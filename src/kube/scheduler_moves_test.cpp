// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/picture.h"
#include "kube/scheduler.h"

/// Moves of pods that somebody asked for, as the scheduler makes them.
namespace gflow::kube {
namespace {

using std::chrono::seconds;

/// A cluster whose pods end when a test says so, its schedulers, one after the other, and the
/// ConfigMap.
class MovingPods {
 public:
  explicit MovingPods(int nodes, int gpus = 2) {
    for (int i = 0; i < nodes; ++i) {
      Node& node = nodes_[fmt::format("n{}", i)];
      node.uid = node.name = fmt::format("n{}", i);
      node.labels = {{"gpu-type", "V100"}, {"host", node.name}};
      node.allocatable = {{"cpu", 64'000}, {"pods", 110'000}, {"nvidia.com/gpu", gpus * 1000}};
    }
    start();
  }

  /// Another scheduler takes over, that knows what the cluster says.
  void start() {
    scheduler.emplace("gflow", policy());
    for (const auto& [name, node] : nodes_) scheduler->put(node);
    for (const auto& [name, pod] : pods) scheduler->put(pod);
    scheduler->put(record);
    scheduler->know_name_spaces();
    scheduler->begin(now());
    settle();
  }
  Pod& make(const std::string& name, const std::string& gpu, const std::string& owner = "Set s") {
    Pod& pod = pods[name];
    pod = {};
    pod.uid = pod.name = name;
    pod.name_space = "default";
    pod.scheduler = "gflow";
    pod.owner = owner;
    pod.gpu = gpu;
    pod.created = now().wall;
    return pod;
  }
  void come(const Pod& pod) {
    scheduler->put(pod);
    settle();
  }
  void come(const std::string& name, const std::string& gpu, const std::string& node) {
    Pod& pod = make(name, gpu);
    pod.wishes.node_selector = {{"host", node}};
    come(pod);
    pod.wishes.node_selector.clear();
    come(pod);
  }
  void cordon(const std::string& node) {
    nodes_.at(node).is_cordoned = true;
    scheduler->put(nodes_.at(node));
    settle();
  }
  /// Its containers have ended; what made it makes it anew.
  void end(const std::string& name) {
    Pod again = pods.at(name);
    pods.erase(name);
    scheduler->pod_gone(name);
    make(name + "-again", again.gpu, again.owner).priority = again.priority;
    come(pods.at(name + "-again"));
  }
  void remove(const std::string& name) {
    pods.erase(name);
    scheduler->pod_gone(name);
    settle();
  }
  static MovesAsked asked(std::vector<std::string> waiting, std::vector<std::string> moves) {
    MovesAsked asked{.id = fmt::format("{}", fmt::join(moves, "+")), .pods = {}, .moves = {}};
    for (const std::string& name : waiting) asked.pods.push_back({"default", name, name});
    for (const std::string& name : moves) asked.moves.push_back({"default", name, name});
    return asked;
  }
  /// Not sooner after a refusal than that is looked at.
  void ask(MovesAsked wanted) {
    pass(seconds(10));
    record = {.version = "1", .asked = std::move(wanted), .answer = {}};
    scheduler->put(record);
    settle();
  }
  /// "making", or "refused: why".
  [[nodiscard]] std::string answer() const {
    if (!record.answer) return "";
    const std::string state(kMovesStates.at(static_cast<std::size_t>(record.answer->state)));
    return record.answer->why.empty() ? state : state + ": " + record.answer->why;
  }
  [[nodiscard]] std::string where(const std::string& name) const { return pods.at(name).node; }
  void pass(seconds time) {
    mono_ += time;
    settle();
  }
  [[nodiscard]] std::string why(const std::string& name) {
    for (const Waiting& one : scheduler->waiting(now())) {
      if (one.pod->name == name) return one.why;
    }
    return "";
  }
  void settle() {
    for (int turn = 0; turn < 20; ++turn) {
      Decisions decisions = scheduler->settle(now());
      ASSERT_EQ(scheduler->check(), "");
      bool is_quiet = decisions.binds.empty() && decisions.evictions.empty() && !decisions.moves;
      for (const Bind& bind : decisions.binds) {
        Pod& pod = pods.at(bind.name);
        pod.node = bind.node;
        pod.allocation = bind.allocation;
        scheduler->bound(bind.uid);
        scheduler->put(pod);
      }
      if (decisions.moves && is_written) {
        record.answer = decisions.moves->answer;
        scheduler->moves_told(decisions.moves->answer.id, true);
      }
      for (const Evict& evict : decisions.evictions) {
        evicted.push_back(evict.name);
        if (evict.is_move) moved.insert(evict.name);
        if (kept.contains(evict.name)) {
          if (refusal) scheduler->not_evicted(evict.uid, *refusal);
        } else {
          pods.at(evict.name).is_deleted = true;
          scheduler->put(pods.at(evict.name));
        }
      }
      const auto wake = scheduler->wake();
      is_quiet = is_quiet && (!wake || *wake > MonoTime(mono_));
      if (is_quiet) return;
    }
    ADD_FAILURE() << "it does not come to rest";
  }

  std::optional<Scheduler> scheduler;
  std::map<std::string, Pod> pods;
  MovesRecord record{.version = "0", .asked = {}, .answer = {}};
  bool is_written = true;
  std::vector<std::string> evicted;          ///< each time it was asked for
  std::set<std::string> moved;               ///< of these who was told that somebody asked for it
  std::set<std::string> kept;                ///< who is not evicted
  std::optional<EvictionRefused> refusal{};  ///< and why; empty: nobody answered yet
  bool preempts = false;

 private:
  [[nodiscard]] engine::Policy policy() const {
    engine::Policy policy;
    policy.preempt = preempts;
    return policy;
  }
  Now now() {
    mono_ += std::chrono::milliseconds(10);
    return {WallTime(seconds(1'800'000'000)) + mono_, MonoTime(mono_)};
  }

  std::map<std::string, Node> nodes_;
  std::chrono::milliseconds mono_{1000};
};

/// n0 and n1 have one of two GPUs left each, and large, which wants two, is there.
struct InPieces : MovingPods {
  InPieces() : MovingPods(2) {
    come("a", "1", "n0");
    come("b", "1", "n1");
    come(make("large", "2"));
  }
};

using PodNames = std::vector<std::string>;

TEST(SchedulerMoves, EvictsThoseAndKeepsTheRoom) {
  InPieces cluster;
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  EXPECT_EQ(cluster.answer(), "making");
  EXPECT_EQ(cluster.evicted, PodNames{"a"});
  EXPECT_EQ(cluster.moved, std::set<std::string>{"a"});
  EXPECT_EQ(cluster.why("large").substr(cluster.why("large").find("It waits")),
            "It waits for default/a to leave, which make room for it.");
  cluster.come(cluster.make("third", "1"));
  EXPECT_EQ(cluster.where("third"), "n1") << "which is beside";
  cluster.come(cluster.make("fourth", "1"));
  EXPECT_EQ(cluster.where("fourth"), "") << "what is free on n0 is for large";
  cluster.end("a");
  EXPECT_EQ(cluster.where("large"), "n0");
  EXPECT_EQ(cluster.where("a-again"), "");
  EXPECT_EQ(cluster.answer(), "started");
  cluster.remove("third");
  EXPECT_EQ(cluster.where("fourth"), "n1") << "it came before who moved came anew";
  EXPECT_EQ(cluster.evicted, PodNames{"a"});
}

TEST(SchedulerMoves, NobodyIsEvictedBeforeItIsWritten) {
  InPieces cluster;
  cluster.is_written = false;
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  EXPECT_EQ(cluster.evicted, PodNames{});
  cluster.scheduler->moves_told("a", false);  // it was taken back
  cluster.settle();
  EXPECT_EQ(cluster.evicted, PodNames{});
  EXPECT_EQ(cluster.why("large").find("It waits for default/a"), std::string::npos);
}

TEST(SchedulerMoves, AreRefusedWhereTheyWouldNotDo) {
  InPieces cluster;
  cluster.ask(MovingPods::asked({"large"}, {"a", "b"}));
  EXPECT_NE(cluster.answer().find("refused: these moves would not start pod default/large now"),
            std::string::npos)
      << cluster.answer();
  cluster.ask(MovingPods::asked({"other"}, {"a"}));
  EXPECT_EQ(cluster.answer(), "refused: pod default/other does not wait for room");
  cluster.ask(MovingPods::asked({"large"}, {"gone"}));
  EXPECT_EQ(cluster.answer(),
            "refused: pod default/gone is not on a node by gflow-kube, or is about to go");
  cluster.pods.at("a").owner.clear();
  cluster.come(cluster.pods.at("a"));
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  EXPECT_NE(cluster.answer().find("refused: "), std::string::npos) << "nothing makes it anew";
  cluster.come(cluster.make("third", "1"));
  cluster.ask(MovingPods::asked({"large"}, {"b"}));
  EXPECT_NE(cluster.answer().find("refused: "), std::string::npos) << "its place is taken";
  EXPECT_EQ(cluster.evicted, PodNames{});
}

TEST(SchedulerMoves, OneAfterTheOther) {
  MovingPods cluster(4);
  for (int i = 0; i < 4; ++i) cluster.come(fmt::format("p{}", i), "1", fmt::format("n{}", i));
  Pod& first = cluster.make("first", "2");
  first.priority = 1'000'000;
  cluster.come(first);
  cluster.come(cluster.make("second", "2"));
  cluster.ask(MovingPods::asked({"second"}, {"p1"}));
  EXPECT_NE(cluster.answer().find(
                "the moves for pod default/first come before those for pod default/second"),
            std::string::npos)
      << cluster.answer();
  cluster.ask(MovingPods::asked({"first"}, {"p0"}));
  EXPECT_EQ(cluster.answer(), "making");
  // As one who overwrites what is under way does: that is given up then.
  cluster.ask(MovingPods::asked({"second"}, {"p1"}));
  EXPECT_EQ(cluster.evicted, PodNames{"p0"});
  EXPECT_EQ(cluster.answer().substr(0, 7), "refused") << cluster.answer();
}

/// Of the same priority who asks may know another order: that of the Jobs that the pods are of.
TEST(SchedulerMoves, OfTheSamePriorityInTheOrderOfJobs) {
  MovingPods cluster(4);
  for (int i = 0; i < 4; ++i) cluster.come(fmt::format("p{}", i), "1", fmt::format("n{}", i));
  for (const char* name : {"first", "second"}) {
    Pod& pod = cluster.make(name, "2");
    pod.job = fmt::format("job of {}", name);
    cluster.come(pod);
  }
  cluster.ask(MovingPods::asked({"second"}, {"p1"}));
  EXPECT_EQ(cluster.answer(), "making");
  cluster.end("p1");
  EXPECT_EQ(cluster.where("second"), "n1");
  cluster.ask(MovingPods::asked({"first"}, {"p2"}));
  EXPECT_EQ(cluster.answer(), "making");
}

/// Whoever takes over goes on, whether who moves is gone by then or not.
TEST(SchedulerMoves, SurviveTheScheduler) {
  for (const bool is_evicted : {false, true}) {
    for (const bool is_gone : {false, true}) {
      if (is_gone && !is_evicted) continue;
      InPieces cluster;
      cluster.pods.at("a").priority = 1000;  // which comes anew before large would
      cluster.start();
      cluster.ask(MovingPods::asked({"large"}, {"a"}));
      ASSERT_EQ(cluster.answer(), "making") << cluster.answer();
      ASSERT_EQ(cluster.evicted, PodNames{"a"});
      cluster.pods.at("a").is_deleted = is_evicted;
      if (is_gone) {
        cluster.pods.erase("a");
        cluster.make("a-again", "1").priority = 1000;
      }
      cluster.make("third", "1");
      cluster.make("fourth", "1");
      cluster.start();
      if (!is_gone) {
        EXPECT_EQ(cluster.evicted.size(), is_evicted ? 1U : 2U);
        EXPECT_EQ(cluster.where("third") + cluster.where("fourth"), "n1");
        EXPECT_EQ(cluster.where("large"), "");
        cluster.end("a");
      }
      EXPECT_EQ(cluster.where("large"), "n0") << is_evicted << is_gone;
      EXPECT_EQ(cluster.answer(), "started");
    }
  }
}

/// Who asked may have gone long ago.
TEST(SchedulerMoves, AreNotBegunByWhoComesLater) {
  InPieces cluster;
  cluster.record = {.version = "1", .asked = MovingPods::asked({"large"}, {"a"}), .answer = {}};
  cluster.start();
  EXPECT_EQ(cluster.answer(), "refused: it was asked for before this scheduler began: ask again");
  EXPECT_EQ(cluster.evicted, PodNames{});
}

TEST(SchedulerMoves, ABudgetIsAskedAgainEachMinute) {
  InPieces cluster;
  cluster.kept = {"a"};
  cluster.refusal = EvictionRefused{true, "a budget"};
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  EXPECT_EQ(cluster.answer(), "making");
  EXPECT_NE(cluster.why("large").find("A disruption budget keeps default/a, which is asked again"),
            std::string::npos)
      << cluster.why("large");
  cluster.pass(seconds(61));
  EXPECT_EQ(cluster.evicted, (PodNames{"a", "a"}));
  cluster.come(cluster.make("third", "1"));
  cluster.come(cluster.make("fourth", "1"));
  EXPECT_EQ(cluster.where("third") + cluster.where("fourth"), "n1") << "it is kept all the same";
  cluster.kept.clear();
  cluster.pass(seconds(61));
  EXPECT_EQ(cluster.evicted, (PodNames{"a", "a", "a"}));
  cluster.end("a");
  EXPECT_EQ(cluster.where("large"), "n0");
}

TEST(SchedulerMoves, AServerThatDoesNotEvictIsAskedAgain) {
  InPieces cluster;
  cluster.kept = {"a"};
  cluster.refusal = EvictionRefused{false, "evict default/a: nobody answers", true};
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  EXPECT_EQ(cluster.answer(), "making");
  EXPECT_EQ(cluster.why("large").find("budget"), std::string::npos);
  cluster.kept.clear();
  cluster.pass(seconds(61));
  EXPECT_EQ(cluster.evicted, (PodNames{"a", "a"}));
  cluster.end("a");
  EXPECT_EQ(cluster.where("large"), "n0");
}

TEST(SchedulerMoves, AreGivenUp) {
  InPieces cluster;
  cluster.kept = {"a"};
  cluster.refusal = EvictionRefused{true, "a budget"};
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  cluster.pass(seconds(601));
  EXPECT_EQ(cluster.answer(), "making") << "it has 30 seconds to end";
  cluster.pass(seconds(60));
  EXPECT_EQ(
      cluster.answer(),
      "given_up: it had no room 11 minutes after it was asked for, and default/a has not left");
  EXPECT_EQ(cluster.evicted.size(), 2U) << "not at every step of time";
  const std::size_t asked = cluster.evicted.size();
  cluster.pass(seconds(3600));
  EXPECT_EQ(cluster.evicted.size(), asked);
  EXPECT_EQ(cluster.why("large").find("It waits for"), std::string::npos);

  cluster.refusal = EvictionRefused{false, "evict default/a: pods is forbidden (403)"};
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  EXPECT_EQ(cluster.answer(), "given_up: evict default/a: pods is forbidden (403)");

  cluster.kept.clear();
  cluster.record.asked->id = "again";
  cluster.record.answer.reset();
  cluster.scheduler->put(cluster.record);
  cluster.settle();
  EXPECT_EQ(cluster.answer(), "making");
  cluster.remove("large");
  EXPECT_EQ(cluster.answer(), "given_up: pod default/large is gone");
  cluster.end("a");
  EXPECT_EQ(cluster.where("a-again"), "n1");
  cluster.come(cluster.make("other", "2"));
  EXPECT_EQ(cluster.where("other"), "n0") << "the room is anybody's";
}

/// Who is refused first ends them, and the others are no victims of a preemption that nobody wants.
TEST(SchedulerMoves, TurnNoPreemptionOn) {
  MovingPods cluster(2, 4);
  cluster.come("b", "1", "n0");
  cluster.come("c", "1", "n0");
  cluster.come("x", "2", "n1");
  cluster.come(cluster.make("large", "4"));
  cluster.kept = {"b", "c"};
  cluster.ask(MovingPods::asked({"large"}, {"b", "c"}));
  ASSERT_EQ(cluster.evicted, (PodNames{"b", "c"})) << cluster.answer();
  for (const char* name : {"b", "c"}) {
    cluster.scheduler->not_evicted(name, {false, "evicting is forbidden"});
    cluster.settle();
  }
  EXPECT_EQ(cluster.answer(), "given_up: evicting is forbidden");
  cluster.pass(seconds(120));
  Pod& high = cluster.make("high", "4");
  high.priority = 1'000'000;
  cluster.come(high);
  EXPECT_EQ(cluster.where("high"), "");
  cluster.pass(seconds(120));
  EXPECT_EQ(cluster.evicted, (PodNames{"b", "c"}));
}

/// What was right when it was asked for is looked at again before somebody is evicted.
TEST(SchedulerMoves, NobodyIsEvictedForNothing) {
  InPieces cluster;
  cluster.is_written = false;
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  cluster.come("x", "1", "n0");
  cluster.is_written = true;
  cluster.record.answer = MovesAnswer{"a", MovesState::Making, "", 101};
  cluster.scheduler->moves_told("a", true);
  cluster.settle();
  EXPECT_EQ(cluster.evicted, PodNames{});
  EXPECT_EQ(cluster.answer().substr(0, 8), "given_up") << cluster.answer();
}

TEST(SchedulerMoves, NobodyIsAskedAgainForNothing) {
  for (const bool is_cordoned : {false, true}) {
    InPieces cluster;
    cluster.kept = {"a"};
    cluster.refusal = EvictionRefused{true, "a budget"};
    cluster.ask(MovingPods::asked({"large"}, {"a"}));
    ASSERT_EQ(cluster.answer(), "making");
    if (is_cordoned) {
      cluster.cordon("n0");
    } else {
      Pod& high = cluster.make("high", "1");
      high.priority = 1'000'000;
      high.wishes.node_selector = {{"host", "n0"}};
      cluster.come(high);
      ASSERT_EQ(cluster.where("high"), "n0");
    }
    cluster.kept.clear();
    cluster.pass(seconds(61));
    EXPECT_EQ(cluster.evicted, PodNames{"a"});
    EXPECT_EQ(cluster.answer(),
              "given_up: pod default/large would not start by these moves any more");
  }
}

/// One had gone when nobody made moves for a while, and others may have taken the room.
TEST(SchedulerMoves, AreNotResumedForNothing) {
  for (const bool is_taken : {false, true}) {
    MovingPods cluster(2, 4);
    cluster.come("b", "1", "n0");
    if (is_taken) cluster.come("x", "1", "n0");
    cluster.come("c", "2", "n1");
    cluster.come(cluster.make("large", "4"));
    cluster.record = {.version = "1",
                      .asked = MovingPods::asked({"large"}, {"a", "b"}),
                      .answer = MovesAnswer{"a+b", MovesState::Making, "", 101}};
    cluster.start();
    EXPECT_EQ(cluster.evicted, is_taken ? PodNames{} : PodNames{"b"});
    EXPECT_EQ(cluster.answer(),
              is_taken ? "given_up: pod default/large would not start by these moves any more"
                       : "making");
  }
}

/// As who may patch the ConfigMap can write: a name that nobody has, beside one that does not move.
TEST(SchedulerMoves, WhatSomebodyElseWroteIsNotMade) {
  InPieces cluster;
  cluster.come("bare", "1", "n1");
  cluster.pods.at("bare").owner.clear();
  cluster.come(cluster.pods.at("bare"));
  const MovesRecord forged{.version = "1",
                           .asked = MovingPods::asked({"large"}, {"a", "bare", "nobody"}),
                           .answer = MovesAnswer{"a+bare+nobody", MovesState::Making, "", 255}};
  cluster.record = forged;
  cluster.scheduler->put(cluster.record);
  cluster.settle();
  EXPECT_EQ(cluster.answer(), "given_up: it is not this scheduler that makes them: ask again");
  cluster.record = forged;
  cluster.start();
  EXPECT_EQ(cluster.answer(), "given_up: pod default/bare may not be moved");
  MovesAsked renamed = MovingPods::asked({"large"}, {"a"});
  renamed.moves.front().name = "other";
  cluster.ask(renamed);
  EXPECT_EQ(cluster.answer(),
            "refused: pod default/other is not on a node by gflow-kube, or is about to go");
  EXPECT_EQ(cluster.evicted, PodNames{});
}

/// What a watch tells late is no forgery.
TEST(SchedulerMoves, StayEnded) {
  InPieces cluster;
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  MovesRecord late = cluster.record;
  ASSERT_EQ(late.answer->state, MovesState::Making);
  cluster.end("a");
  ASSERT_EQ(cluster.answer(), "started");
  cluster.scheduler->put(late);
  cluster.settle();
  EXPECT_EQ(cluster.answer(), "started");
}

TEST(SchedulerMoves, AfterARefusalTheNextIsLookedAtLater) {
  InPieces cluster;
  cluster.ask(MovingPods::asked({"other"}, {"a"}));
  EXPECT_EQ(cluster.answer().substr(0, 7), "refused");
  cluster.record = {.version = "2", .asked = MovingPods::asked({"large"}, {"a"}), .answer = {}};
  cluster.scheduler->put(cluster.record);
  cluster.settle();
  EXPECT_EQ(cluster.answer(), "");
  cluster.pass(seconds(10));
  EXPECT_EQ(cluster.answer(), "making");
}

TEST(SchedulerMoves, WaitForALongGrace) {
  InPieces cluster;
  cluster.pods.at("a").grace = seconds(900);
  cluster.come(cluster.pods.at("a"));
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  cluster.pass(seconds(890));
  EXPECT_EQ(cluster.answer(), "making");
  cluster.pass(seconds(620));
  EXPECT_EQ(
      cluster.answer(),
      "given_up: it had no room 25 minutes after it was asked for, and default/a has not left");
}

TEST(SchedulerMoves, AreTakenBack) {
  InPieces cluster;
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  cluster.scheduler->put(MovesRecord{});
  EXPECT_EQ(cluster.scheduler->settle({}).dropped_moves, "default/large");
}

/// Four of two GPUs, for whom n0 and n1 have three left and n2 two.
struct GangInPieces : MovingPods {
  GangInPieces() : MovingPods(3, 4) {
    come("a", "1", "n0");
    come("b", "1", "n1");
    come("c", "2", "n2");
    for (int i = 0; i < 4; ++i) {
      gang.push_back(fmt::format("w{}", i));
      come(member(gang.back()));
    }
  }
  Pod& member(const std::string& name) {
    Pod& pod = make(name, "2");
    pod.gang = GangWish{{GangSource::Pods, "default", "train"}, 4};
    return pod;
  }

  std::vector<std::string> gang;
};

TEST(SchedulerMoves, StartAGang) {
  GangInPieces cluster;
  cluster.ask(MovingPods::asked(cluster.gang, {"a"}));
  ASSERT_EQ(cluster.answer(), "making");
  EXPECT_EQ(cluster.evicted, PodNames{"a"});
  cluster.come(cluster.make("third", "2"));
  EXPECT_EQ(cluster.where("third"), "");
  cluster.start();  // and another goes on with it
  EXPECT_EQ(cluster.where("third"), "");
  cluster.end("a");
  for (const std::string& name : cluster.gang) EXPECT_NE(cluster.where(name), "") << name;
  EXPECT_NE(cluster.where("a-again"), "") << "beside them";
  EXPECT_EQ(cluster.where("third"), "");
  EXPECT_EQ(cluster.answer(), "started");
}

/// Which of it start is the gang's to say.
TEST(SchedulerMoves, StartAGangThatOneJoins) {
  GangInPieces cluster;
  cluster.ask(MovingPods::asked(cluster.gang, {"a"}));
  ASSERT_EQ(cluster.answer(), "making");
  Pod& extra = cluster.member("extra");
  extra.priority = 1'000'000;
  cluster.come(extra);
  cluster.end("a");
  int bound = 0;
  for (const char* name : {"extra", "w0", "w1", "w2", "w3"}) {
    bound += cluster.where(name).empty() ? 0 : 1;
  }
  EXPECT_EQ(bound, 4);
  EXPECT_EQ(cluster.answer(), "started");
}

/// A pod of it that is made anew is another, for whom the room is, too.
TEST(SchedulerMoves, StartAGangOfWhichOneIsMadeAnew) {
  GangInPieces cluster;
  cluster.ask(MovingPods::asked(cluster.gang, {"a"}));
  ASSERT_EQ(cluster.answer(), "making");
  cluster.remove("w3");
  EXPECT_EQ(cluster.answer(), "making");
  cluster.come(cluster.member("w3-again"));
  cluster.come(cluster.make("third", "2"));
  EXPECT_EQ(cluster.where("third"), "");
  cluster.end("a");
  for (const char* name : {"w0", "w1", "w2", "w3-again"}) EXPECT_NE(cluster.where(name), "");
  EXPECT_EQ(cluster.where("third"), "");
  EXPECT_EQ(cluster.answer(), "started");
  EXPECT_EQ(cluster.evicted, PodNames{"a"});
}

/// Whatever room there is, it does not start.
TEST(SchedulerMoves, AreNotMadeForAGangThatCannotStart) {
  GangInPieces held;
  for (const std::string& name : held.gang) {
    held.pods.at(name).near = {.required = "row", .is_own = true};
    held.come(held.pods.at(name));
  }
  held.ask(MovingPods::asked(held.gang, {"a"}));
  EXPECT_NE(held.answer().find("refused: pod default/w0 waits for more than room: "
                               "gflow/topology-required is 'row'"),
            std::string::npos)
      << held.answer();
  EXPECT_EQ(held.evicted, PodNames{});

  GangInPieces small;
  const GangName name{GangSource::Kai, "default", "group"};
  small.scheduler->put(PodGroup{"group", name, 8, {}});
  for (const std::string& pod : small.gang) {
    small.pods.at(pod).gang = GangWish{name, 0};
    small.come(small.pods.at(pod));
  }
  small.ask(MovingPods::asked(small.gang, {"a"}));
  EXPECT_NE(small.answer().find("refused: pod default/w0 waits for more than room"),
            std::string::npos)
      << small.answer();
  EXPECT_EQ(small.evicted, PodNames{});
}

/// Who waits beside those that start has no part of it.
TEST(SchedulerMoves, AreNotMadeForOthersBeside) {
  InPieces cluster;
  cluster.come(cluster.make("mine", "2"));
  cluster.ask(MovingPods::asked({"large", "mine"}, {"a"}));
  EXPECT_EQ(cluster.answer(), "refused: these are not the pods that start together by these moves");
  for (const char* mover : {"a", "nobody"}) {
    cluster.record = {.version = "1",
                      .asked = MovingPods::asked({"large", "mine"}, {mover}),
                      .answer = MovesAnswer{mover, MovesState::Making, "", 255}};
    cluster.start();
    EXPECT_EQ(cluster.answer(),
              "given_up: these are not the pods that start together by these moves");
  }
  cluster.record = {.version = "1",
                    .asked = MovingPods::asked({"mine"}, {"nobody"}),
                    .answer = MovesAnswer{"nobody", MovesState::Making, "", 255}};
  cluster.start();
  EXPECT_EQ(cluster.answer(), "given_up: pod default/mine would not start by these moves any more");
  EXPECT_EQ(cluster.evicted, PodNames{});
}

/// Four of it run, and moves are made for two more.
TEST(SchedulerMoves, StartMoreOfAGang) {
  MovingPods cluster(6, 4);
  const auto member = [&cluster](const std::string& name) -> Pod& {
    Pod& pod = cluster.make(name, "2");
    pod.gang = GangWish{{GangSource::Kai, "default", "train"}, 0};
    return pod;
  };
  cluster.scheduler->put(PodGroup{"group", {GangSource::Kai, "default", "train"}, 4, {}});
  for (int i = 0; i < 4; ++i) {
    Pod& pod = member(fmt::format("w{}", i));
    pod.wishes.node_selector = {{"host", fmt::format("n{}", i / 2)}};
    cluster.come(pod);
  }
  for (int i = 2; i < 6; ++i) {
    cluster.come(fmt::format("m{}", i), "1", fmt::format("n{}", i));
    cluster.come(fmt::format("x{}", i), "2", fmt::format("n{}", i));
  }
  ASSERT_EQ(cluster.where("w3"), "n1");
  cluster.come(member("w4"));
  cluster.come(member("w5"));
  cluster.ask(MovingPods::asked({"w4", "w5"}, {"m2", "m4"}));
  EXPECT_EQ(cluster.answer(), "making");
  EXPECT_EQ(cluster.evicted, (PodNames{"m2", "m4"}));
  cluster.end("m2");
  EXPECT_EQ(cluster.answer(), "making") << "one of them";
  cluster.end("m4");
  EXPECT_NE(cluster.where("w4"), "");
  EXPECT_NE(cluster.where("w5"), "");
  EXPECT_EQ(cluster.answer(), "started");
}

/// Nobody is evicted by who takes over before all of it are there again.
TEST(SchedulerMoves, WaitForAGangOfWhichOneIsToBeMadeAnew) {
  MovingPods cluster(3, 4);
  cluster.come("a", "1", "n0");
  cluster.come("b", "1", "n1");
  cluster.come("c", "2", "n2");
  std::vector<std::string> gang;
  for (int i = 0; i < 4; ++i) gang.push_back(fmt::format("w{}", i));
  for (int i = 0; i < 3; ++i) {
    Pod& pod = cluster.make(gang[static_cast<std::size_t>(i)], "2");
    pod.gang = GangWish{{GangSource::Pods, "default", "train"}, 4};
    cluster.come(pod);
  }
  cluster.record = {.version = "1",
                    .asked = MovingPods::asked(gang, {"a", "gone"}),
                    .answer = MovesAnswer{"a+gone", MovesState::Making, "", 101}};
  cluster.start();
  EXPECT_EQ(cluster.answer(), "making");
  EXPECT_EQ(cluster.evicted, PodNames{});
  Pod& last = cluster.make("w3-again", "2");
  last.gang = GangWish{{GangSource::Pods, "default", "train"}, 4};
  cluster.come(last);
  cluster.pass(seconds(60));
  EXPECT_EQ(cluster.evicted, PodNames{"a"});
  cluster.end("a");
  for (const char* name : {"w0", "w1", "w2", "w3-again"}) EXPECT_NE(cluster.where(name), "");
  EXPECT_EQ(cluster.answer(), "started");
}

/// With --preempt, too, none but those of the plan make room for it.
TEST(SchedulerMoves, ArePartOfNoPreemption) {
  MovingPods cluster(2);
  cluster.preempts = true;
  cluster.start();
  cluster.come("a", "1", "n0");
  cluster.come("b", "1", "n1");
  cluster.pods.at("b").priority = -1000;
  cluster.pods.at("b").owner.clear();
  cluster.come(cluster.pods.at("b"));
  cluster.pods.at("b").priority = 0;
  cluster.come(cluster.pods.at("b"));
  cluster.come(cluster.make("large", "2"));
  ASSERT_EQ(cluster.evicted, PodNames{});
  cluster.ask(MovingPods::asked({"large"}, {"a"}));
  ASSERT_EQ(cluster.answer(), "making") << cluster.answer();
  EXPECT_EQ(cluster.evicted, PodNames{"a"});
  cluster.pass(seconds(900));
  EXPECT_EQ(cluster.evicted, PodNames{"a"});
}

}  // namespace
}  // namespace gflow::kube
