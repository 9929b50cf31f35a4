// SPDX-License-Identifier: Apache-2.0
// Which moves would start jobs that start together, and room that is kept for whom it is made.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/machine_for_tests.h"
#include "core/principal.h"
#include "engine/step.h"

namespace gflow::engine {
namespace {

using Ids = std::set<JobId>;
using Moving = std::vector<JobId>;

constexpr GangNumber kTraining = 7;

/// Nodes n0, n1, ... of four GPUs each, as they are in a cluster: order of submission, and nobody
/// is preempted.
class ClusterOfGangs {
 public:
  explicit ClusterOfGangs(int nodes, int gpus = 4) : state_(policy(), "boot") {
    state_.restored(JobId(1));
    event::NodesChanged there;
    for (int i = 0; i < nodes; ++i) {
      there.nodes.push_back(
          machine_with_gpus(fmt::format("n{}", i), gpus, "NVIDIA T4", Memory::gib(16)));
    }
    tell(there);
  }

  JobId submit(int gpus, GangNumber gang = kNoGang, Preemption preemption = Preemption::None) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.request.gpus = gpus;
    spec.preemption = preemption;
    const JobId id = state_.next_id();
    if (gang != kNoGang) state_.join_gang(id, gang);
    tell(event::Submit{{spec}, system_principal()});
    return id;
  }
  /// One that may move, on a node.
  JobId submit_movable(int gpus) { return submit(gpus, kNoGang, Preemption::Requeue); }
  Ids submit_gang(std::size_t jobs, int gpus) {
    state_.put_gang(kTraining, jobs);
    return submit_gang_as_it_is(jobs, gpus);
  }
  Ids submit_gang_as_it_is(std::size_t jobs, int gpus) {
    Ids ids;
    for (std::size_t i = 0; i < jobs; ++i) ids.insert(submit(gpus, kTraining));
    return ids;
  }
  void end(JobId id, EndReason reason = EndReason::Exited) {
    Outcome outcome;
    outcome.reason = reason;
    tell(event::AttemptEnded{id, attempt_of(*state_.find(id))->number, outcome});
  }
  void tell(const Event& event) {
    now_.mono += std::chrono::seconds(1);
    now_.wall += std::chrono::seconds(1);
    launched.clear();
    stopped.clear();
    for (const Effect& effect : step(state_, event, now_)) {
      if (const auto* stop = std::get_if<effect::StopAttempt>(&effect)) stopped.insert(stop->job);
      const auto* launch = std::get_if<effect::Launch>(&effect);
      if (launch == nullptr) continue;
      launched.insert(launch->order->job);
    }
    ASSERT_EQ(state_.check(), "");
    for (const JobId id : Ids(launched)) {
      (void)step(
          state_, event::AttemptStarted{id, attempt_of(*state_.find(id))->number, 100}, now_);
    }
  }
  void make_room(const Moving& jobs, const Moving& moves) {
    for (const JobId id : jobs) state_.spare(id, true);
    tell(event::MakeRoom{jobs, moves, kDefaultPriority + 1});
  }
  void pass(std::chrono::seconds time) { now_.mono += time, now_.wall += time; }

  [[nodiscard]] std::vector<DefragPlan> plans() const { return state_.defrag(100, now_); }
  /// "9+10 to n0:0 n1:0 after 3 from n0:0 to n1:2", or why there are none.
  [[nodiscard]] std::string told() const {
    std::string text;
    for (const DefragPlan& plan : plans()) {
      text += fmt::format("{}{}", text.empty() ? "" : "; ", plan.job.value);
      for (const DefragStart& one : plan.together) text += fmt::format("+{}", one.job.value);
      if (plan.outcome != DefragOutcome::Moves) {
        text += fmt::format(" {}", defrag_outcome_name(plan.outcome));
        continue;
      }
      text += " to " + place(plan.to);
      for (const DefragStart& one : plan.together) text += " " + place(one.to);
      for (const DefragMove& move : plan.moves) {
        text += fmt::format(
            " after {} from {} to {}", move.job.value, place(move.from), place(move.to));
      }
    }
    return text;
  }
  [[nodiscard]] std::string node_of(JobId id) const {
    const Job* job = state_.find(id);
    return is_active(*job) ? attempt_of(*job)->allocation.node : "";
  }
  [[nodiscard]] std::string check(JobId job, const Moving& moves) const {
    const auto checked = state_.check_moves(job, moves, 100, now_);
    return checked ? "" : checked.error().message;
  }
  State& state() { return state_; }
  [[nodiscard]] Now now() const { return now_; }
  Ids launched;  ///< by what was told last
  Ids stopped;

 private:
  static Policy policy() {
    Policy policy;
    policy.order.order = Order::Submission;
    policy.preempt = false;
    return policy;
  }
  static std::string place(const std::vector<Allocation>& parts) {
    return fmt::format("{}:{}", parts.front().node, fmt::join(parts.front().gpus, ","));
  }

  Now now_{.wall = WallTime(std::chrono::hours(1)), .mono = MonoTime(std::chrono::hours(1))};
  State state_;
};

/// n0 and n1 have three GPUs left and n2 two: with one move there is room for four of two.
struct ThreeNodes : ClusterOfGangs {
  ThreeNodes() : ClusterOfGangs(3) {
    const JobId first = submit(3);
    a = submit_movable(1);
    const JobId second = submit(3);
    b = submit_movable(1);
    (void)submit(2);
    end(first);
    end(second);
    EXPECT_EQ(node_of(a) + node_of(b), "n0n1");
  }
  JobId a;
  JobId b;
};

/// Moves that free room here and there would be made for nothing.
TEST(DefragGang, HasNoneWhereAllHaveToBeInOneDomain) {
  ThreeNodes cluster;
  cluster.state().put_gang(kTraining, 4, {{"rack"}, 1, 0});
  const Ids gang = cluster.submit_gang_as_it_is(4, 2);
  ASSERT_EQ(cluster.launched, Ids{});
  EXPECT_EQ(cluster.state().defrag(100, cluster.now()).front().outcome, DefragOutcome::NotSearched);
  EXPECT_NE(cluster.check(*gang.begin(), {cluster.a}), "");
}

TEST(DefragGang, HasOnePlanForAll) {
  ThreeNodes cluster;
  const Ids gang = cluster.submit_gang(4, 2);
  ASSERT_EQ(cluster.launched, Ids{});
  EXPECT_EQ(cluster.told(), "6+7+8+9 to n2:2,3 n0:0,1 n1:0,1 n1:2,3 after 4 from n1:3 to n0:2")
      << "of both it lost the least";
}

TEST(DefragGang, IsToldOfWhatElseItWaitsFor) {
  ThreeNodes cluster;
  cluster.state().put_gang(kTraining, 3);
  const JobId first = cluster.submit(2, kTraining);
  EXPECT_EQ(cluster.told(), "6 waits_for_more");
  (void)cluster.submit(2, kTraining);
  (void)cluster.submit(4, kTraining);
  EXPECT_EQ(cluster.told(), "6+7+8 to n2:2,3 n0:0,1 n1:0,1,2,3 after 4 from n1:3 to n0:2");
  cluster.state().put_gang(kTraining, 4);
  (void)cluster.submit(1, kTraining);
  EXPECT_EQ(cluster.told(), "6+7+8+9 not_enough_free");
  EXPECT_NE(cluster.check(first, {cluster.a}), "");
}

/// A gang that lost a member would run for nothing.
TEST(DefragGang, OfThoseThatRunNobodyMoves) {
  ClusterOfGangs cluster(2);
  cluster.state().put_gang(kTraining, 2);
  const JobId filler = cluster.submit(3);
  const JobId first = cluster.submit(1, kTraining, Preemption::Requeue);
  const JobId second = cluster.submit(1, kTraining, Preemption::Requeue);
  cluster.end(filler);
  ASSERT_EQ(cluster.node_of(first) + cluster.node_of(second), "n0n1");
  (void)cluster.submit(4);
  EXPECT_EQ(cluster.told(), "4 nothing_movable");
}

TEST(DefragGang, IsCheckedWithTheMovesThatWereTold) {
  ThreeNodes cluster;
  (void)cluster.submit_gang(4, 2);
  EXPECT_EQ(cluster.check(JobId(6), {cluster.a}), "");
  EXPECT_EQ(cluster.check(JobId(6), {cluster.b}), "");
  EXPECT_EQ(cluster.check(JobId(6), {cluster.a, cluster.b}),
            "these moves would not start job 6 now: 'gctl defrag' shows the moves there are")
      << "one is enough";
  EXPECT_NE(cluster.check(JobId(6), {}), "");
  EXPECT_NE(cluster.check(JobId(7), {cluster.a}), "") << "it is the first of it that is asked for";
}

TEST(MakeRoom, KeepsWhatIsLeftForAGang) {
  ThreeNodes cluster;
  const Ids gang = cluster.submit_gang(4, 2);
  cluster.make_room({gang.begin(), gang.end()}, {cluster.a});
  EXPECT_EQ(cluster.stopped, Ids{cluster.a});
  const JobId third = cluster.submit(2);
  EXPECT_EQ(cluster.launched, Ids{}) << "what is free now is for the gang, too";
  cluster.end(cluster.a, EndReason::Preempted);
  for (const JobId id : gang) EXPECT_NE(cluster.node_of(id), "");
  EXPECT_EQ(cluster.node_of(third), "");
  EXPECT_EQ(cluster.node_of(cluster.a), "n1") << "where there is room beside";
}

TEST(MakeRoom, KeepsItHoweverLongThatTakes) {
  ClusterOfGangs cluster(2, 2);
  const JobId a = cluster.submit_movable(1);
  const JobId filler = cluster.submit(1);
  const JobId b = cluster.submit_movable(1);
  cluster.end(filler);
  const JobId large = cluster.submit(2);
  ASSERT_EQ(cluster.told(), "4 to n1:0,1 after 3 from n1:0 to n0:1");
  ASSERT_EQ(cluster.check(large, {a}), "") << "though that costs more";
  cluster.make_room({large}, {a});
  EXPECT_EQ(cluster.stopped, Ids{a});
  cluster.pass(std::chrono::hours(2));  // beyond its grace, and the patience of who waits
  const JobId third = cluster.submit(1);
  EXPECT_EQ(cluster.node_of(third), cluster.node_of(b)) << "there is room beside";
  const JobId fourth = cluster.submit(1);
  EXPECT_EQ(cluster.node_of(fourth), "") << "and there it is kept";
  cluster.end(a, EndReason::Preempted);
  EXPECT_EQ(cluster.launched, Ids{large});
  EXPECT_EQ(cluster.node_of(large), "n0");
}

TEST(MakeRoom, IsTakenBackAndOfNobodyThen) {
  ClusterOfGangs cluster(1, 2);
  const JobId a = cluster.submit_movable(1);
  const JobId large = cluster.submit(2);
  cluster.make_room({large}, {a});
  const JobId third = cluster.submit(1);
  EXPECT_EQ(cluster.launched, Ids{});
  cluster.tell(event::StopRefused{a, 1});
  cluster.state().spare(large, false);
  cluster.tell(event::MakeRoom{{large}, {}, kDefaultPriority});
  EXPECT_EQ(cluster.state().find(large)->spec.priority, kDefaultPriority);
  cluster.pass(std::chrono::hours(1));
  cluster.tell(event::Tick{});
  EXPECT_EQ(cluster.node_of(third), "n0") << "as the patience of the other is over";
}

/// Those who are gone meanwhile are left out, and those who started.
TEST(MakeRoom, LeavesOutWhoIsNotWhatItWas) {
  ClusterOfGangs cluster(2, 2);
  const JobId a = cluster.submit_movable(1);
  const JobId runs = cluster.submit(1);
  cluster.make_room({runs, JobId(99)}, {a, JobId(98)});
  EXPECT_EQ(cluster.stopped, Ids{}) << "for nobody";
  EXPECT_EQ(cluster.state().find(runs)->spec.priority, kDefaultPriority);
}

/// What a plan says comes true: all of the gang start once those who move are gone, and one that
/// moves alone finds room, whatever the cluster looked like. Of several, each goes where there is
/// room when it comes back, which may be where the plan had another.
TEST(DefragGang, WhatAPlanSaysComesTrue) {
  int came = 0;
  std::size_t moved = 0;
  std::size_t in_vain = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 draw(seed);
    const auto below = [&draw](unsigned end) { return draw() % end; };
    ClusterOfGangs cluster(2 + static_cast<int>(below(4)));
    std::vector<JobId> there;
    for (int i = 0; i < 16; ++i) {
      const int gpus = below(3) == 0 ? 2 : 1;
      there.push_back(below(4) == 0 ? cluster.submit(gpus) : cluster.submit_movable(gpus));
    }
    for (const JobId id : there) {
      if (!is_active(*cluster.state().find(id))) {
        cluster.tell(event::Cancel{{id}, system_principal()});
      } else if (below(2) == 0) {
        cluster.end(id);
      }
    }
    const std::size_t members = 2 + below(2);
    const Ids gang = cluster.submit_gang(members, 2 + static_cast<int>(below(3)));
    const auto plans = cluster.plans();
    if (plans.empty()) continue;
    if (plans.front().outcome != DefragOutcome::Moves) {
      ++in_vain;
      continue;
    }
    Moving moves;
    for (const DefragMove& move : plans.front().moves) moves.push_back(move.job);
    const std::string told = cluster.told();
    ASSERT_EQ(cluster.check(plans.front().job, moves), "") << seed << ": " << told;
    cluster.make_room({gang.begin(), gang.end()}, moves);
    for (const JobId id : moves) cluster.end(id, EndReason::Preempted);
    for (const JobId id : gang) EXPECT_NE(cluster.node_of(id), "") << seed << ": " << told;
    if (moves.size() == 1) {
      EXPECT_NE(cluster.node_of(moves.front()), "") << seed << ": " << told;
    }
    ++came;
    moved += moves.size();
  }
  EXPECT_GT(came, 20);
  EXPECT_GT(moved, 25U);
  EXPECT_GT(in_vain, 10U);
}

}  // namespace
}  // namespace gflow::engine
