// SPDX-License-Identifier: Apache-2.0
// What must hold whatever people do: found by rapidcheck, which also shortens what breaks it.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/step.h"
#include "engine/world_test.h"

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;
using std::chrono::minutes;

using world::Act;
using world::kGpus;
using world::kNodes;
using world::spec_of;
using world::World;

/// The kinds of act of a life, by how often they come.
using Kinds = std::vector<std::pair<std::size_t, Act::Kind>>;

/// A queue and its people, where all goes well.
const Kinds& peaceful() {
  using Kind = Act::Kind;
  static const Kinds kKinds = {
      {8, Kind::Submit}, {6, Kind::End}, {3, Kind::Wait}, {1, Kind::Cancel}, {1, Kind::Raise}};
  return kKinds;
}
/// All that can happen.
const Kinds& eventful() {
  using Kind = Act::Kind;
  static const Kinds kKinds = {{16, Kind::Submit},
                               {10, Kind::End},
                               {6, Kind::Wait},
                               {2, Kind::Cancel},
                               {3, Kind::Raise},
                               {3, Kind::Update},
                               {2, Kind::Hold},
                               {3, Kind::Release},
                               {3, Kind::Suspend},
                               {3, Kind::Resume},
                               {4, Kind::Move},
                               {3, Kind::Launches},
                               {3, Kind::Reports},
                               {2, Kind::Clock},
                               {4, Kind::Node},
                               {2, Kind::Drain},
                               {1, Kind::Configure}};
  return kKinds;
}
/// And GPUs that are idle: since when is not known any more after a restart.
const Kinds& with_idle_gpus() {
  using Kind = Act::Kind;
  static const Kinds kKinds = [] {
    Kinds kinds = eventful();
    kinds.insert(kinds.end(), {{6, Kind::Idle}, {4, Kind::Want}});
    return kinds;
  }();
  return kKinds;
}

rc::Gen<Act> any_act(const Kinds& kinds = peaceful()) {
  std::vector<Act::Kind> weighted;
  for (const auto& [times, kind] : kinds) weighted.insert(weighted.end(), times, kind);
  return rc::gen::build<Act>(
      rc::gen::set(&Act::kind, rc::gen::elementOf(weighted)),
      rc::gen::set(&Act::which, rc::gen::inRange(0, 20)),
      rc::gen::set(&Act::gpus, rc::gen::inRange(0, kGpus + 1)),
      rc::gen::set(&Act::nodes, rc::gen::weightedElement<int>({{6, 1}, {1, kNodes}})),
      rc::gen::set(&Act::percent, rc::gen::element(100, 50, 30)),
      rc::gen::set(&Act::gigabytes, rc::gen::inRange(0, 9)),
      rc::gen::set(&Act::priority, rc::gen::weightedElement<int>({{4, 10}, {1, 5}, {1, 20}})),
      rc::gen::set(&Act::limit, rc::gen::element(0, 30, 600)),
      rc::gen::set(&Act::preemption,
                   rc::gen::element(Preemption::None, Preemption::Requeue, Preemption::Suspend)));
}
/// The same with what more a job can ask for.
rc::Gen<Act> any_eventful_act(const Kinds& kinds = eventful()) {
  return rc::gen::mapcat(any_act(kinds), [](const Act& act) {
    return rc::gen::map(rc::gen::tuple(rc::gen::weightedElement<int>({{6, 0}, {1, 30}, {1, 600}}),
                                       rc::gen::weightedElement<int>({{4, 0}, {1, 1}, {1, 2}}),
                                       rc::gen::weightedElement<int>({{4, 0}, {1, 1}, {1, 2}}),
                                       rc::gen::weightedElement<int>({{6, 0}, {1, 1}, {1, 3}}),
                                       rc::gen::weightedElement<int>({{6, 0}, {1, 1}, {2, 4}})),
                        [act](const std::tuple<int, int, int, int, int>& more) {
                          Act full = act;
                          std::tie(full.begin, full.group, full.retries, full.after, full.tasks) =
                              more;
                          return full;
                        });
  });
}

Order any_order() { return *rc::gen::element(Order::Learned, Order::Submission); }

/// Once nothing new comes, everyone who can run does.
void check_that_all_end(World& world) {
  world.heal();
  world.pass(24h);  // begin times and back-offs
  for (std::uint64_t ends = 0; !world.jobs(Status::Running).empty(); ++ends) {
    RC_ASSERT(ends < 20 * world.state().next_id().value);
    world.pass(1h);
    world.end_one(0);
  }
  RC_ASSERT(world.jobs(Status::Suspended).empty());
  for (const Job* job : world.jobs(Status::Queued)) {
    RC_LOG() << world.told();
    RC_ASSERT(!job->spec.dependencies.jobs.empty());  // one that failed
  }
}

RC_GTEST_PROP(EngineProperty, NothingIsHeldTwiceAndNothingIsForgotten, ()) {
  World world(any_order());
  for (const Act& act : *rc::gen::container<std::vector<Act>>(any_act())) {
    world.act(act);
    RC_ASSERT(world.held_twice() == "");
    RC_ASSERT(world.state().check() == "");
  }
  check_that_all_end(world);
  RC_ASSERT(world.jobs(Status::Queued).empty());
}

RC_GTEST_PROP(EngineProperty, WhateverHappensNothingIsHeldTwiceAndNothingIsForgotten, ()) {
  World world(any_order());
  for (const Act& act : *rc::gen::container<std::vector<Act>>(any_eventful_act(with_idle_gpus()))) {
    world.act(act);
    RC_ASSERT(world.held_twice() == "");
    RC_ASSERT(world.state().check() == "");
  }
  check_that_all_end(world);
}

/// Found by the one above: a launch that was to show whether a node is well again, cancelled
/// before it began, kept the node closed for ever.
TEST(EngineProperty, WhoIsCancelledWhileANodeIsTriedLeavesItOpen) {
  using Kind = Act::Kind;
  World world(Order::Learned);
  for (const Act& act : {Act{.kind = Kind::Launches, .which = 2},  // the nodes have no space
                         Act{.kind = Kind::Submit},
                         Act{.kind = Kind::Submit},
                         Act{.kind = Kind::Launches, .which = 5},  // they are not answered
                         Act{.kind = Kind::Reports},
                         Act{.kind = Kind::Wait, .which = 1},
                         Act{.kind = Kind::Cancel, .which = 0}}) {
    world.act(act);
  }
  world.heal();
  EXPECT_EQ(world.state().check(), "") << world.told();
}

/// A stream of small jobs that never ends, of whatever kind, does not keep a big one from starting.
RC_GTEST_PROP(EngineProperty, NobodyStarves, ()) {
  const Order order = any_order();
  Act small = *any_act();
  Act big = *any_act();
  small.gpus = *rc::gen::inRange(1, kGpus);
  small.nodes = 1;
  big.gpus = kGpus;
  big.nodes = *rc::gen::element(1, kNodes);
  small.priority = big.priority = kDefaultPriority;
  small.preemption = big.preemption = *rc::gen::element(Preemption::None, Preemption::Requeue);
  const int length = *rc::gen::element(60, 500);  // minutes of a small job

  World world(order);
  for (int i = 0; i < 4 * kNodes * kGpus; ++i)
    world.tell(event::Submit{{spec_of(small, world.now().wall)}, system_principal()});
  const JobId waits = world.state().next_id();
  world.tell(event::Submit{{spec_of(big, world.now().wall)}, system_principal()});
  const auto give_up = world.now().wall + 40 * 24h;
  while (status_of(*world.state().find(waits)) == Status::Queued) {
    RC_ASSERT(world.now().wall < give_up);
    world.pass(minutes(length));
    for (std::size_t left = world.jobs(Status::Running).size(); left > 0; --left) {
      world.tell(event::Submit{{spec_of(small, world.now().wall)}, system_principal()});
      if (status_of(*world.state().find(waits)) != Status::Queued) break;
      world.end_one(0);
    }
  }
}

/// Jobs alike in owner, request, program and limit start in the order of submission, whatever is
/// learned meanwhile and however the clock is set.
RC_GTEST_PROP(EngineProperty, JobsAlikeAreFirstInFirstOut, ()) {
  World world(any_order());
  std::vector<Act> kinds;
  for (int i = 0; i < 3; ++i) {
    kinds.push_back(*any_act());
    kinds.back().kind = Act::Kind::Submit;
    kinds.back().gpus = *rc::gen::inRange(1, kGpus + 1);
  }
  const auto acts = *rc::gen::container<std::vector<Act>>(any_act());
  std::map<int, std::vector<JobId>> alike;
  for (Act act : acts) {
    if (act.kind == Act::Kind::Raise) act.kind = Act::Kind::Clock;
    const int kind = act.which % 3;
    const JobId next = world.state().next_id();
    world.act(act.kind == Act::Kind::Submit ? kinds[static_cast<std::size_t>(kind)] : act);
    if (world.state().find(next) != nullptr) alike[kind].push_back(next);
    for (const auto& [which, jobs] : alike) {
      bool waits = false;
      for (const JobId id : jobs) {
        const Job& job = *world.state().find(id);
        const bool started = attempt_of(job) != nullptr && is_active(job);
        RC_ASSERT(!(waits && started && job.attempts == 1));
        waits = waits || (job.attempts == 0 && status_of(job) == Status::Queued);
      }
    }
  }
}

/// A daemon that is killed before each act decides as one that lives on.
struct Twins {
  explicit Twins(Order order) : kept(order), restarted(order) {}
  void act(const Act& act) {
    kept.pass(1ms);
    restarted.pass(1ms);
    restarted.restart();
    kept.hear_of_nodes();
    kept.act(act);
    restarted.act(act);
  }
  World kept;
  World restarted;
};

RC_GTEST_PROP(EngineProperty, ARestartChangesNothing, ()) {
  Twins twins(any_order());
  for (const Act& act : *rc::gen::container<std::vector<Act>>(any_eventful_act())) {
    twins.act(act);
    RC_ASSERT(twins.restarted.state().check() == "");
    RC_ASSERT(twins.kept.told() == twins.restarted.told());
  }
}

/// A life that the property above found.
void expect_restarts_change_nothing(const std::vector<Act>& acts) {
  for (const Order order : {Order::Learned, Order::Submission}) {
    Twins twins(order);
    for (const Act& act : acts) {
      twins.act(act);
      EXPECT_EQ(twins.kept.told(), twins.restarted.told());
    }
  }
}

/// Job 1 is suspended for job 2, whose every launch is taken back.
TEST(EngineProperty, OneWhoseLaunchIsTakenBackHasHadItsRoomMade) {
  expect_restarts_change_nothing({{.which = 15,
                                   .gpus = 2,
                                   .nodes = 2,
                                   .percent = 30,
                                   .gigabytes = 1,
                                   .limit = 30,
                                   .preemption = Preemption::Suspend,
                                   .retries = 1},
                                  {.gpus = 3, .percent = 30, .gigabytes = 1, .limit = 600},
                                  {.kind = Act::Kind::Launches, .which = 11},
                                  {.kind = Act::Kind::Wait, .which = 1, .after = 3},
                                  {.kind = Act::Kind::End}});
}

/// A job of two nodes holds GPUs of one that is removed, job 2 waits.
TEST(EngineProperty, ANodeThatIsGoneExplainsNothing) {
  const auto node = [](int which) { return Act{.kind = Act::Kind::Node, .which = which}; };
  expect_restarts_change_nothing({
      {.nodes = 2, .priority = 10, .limit = 30, .group = 1, .retries = 1, .after = 1},
      {.gpus = 1, .percent = 50, .group = 1},
      {.percent = 30, .priority = 20, .preemption = Preemption(3), .group = 1, .retries = 2},
      {.kind = Act::Kind::End},
      node(5),
      {.which = 3, .gpus = 3, .nodes = 2, .limit = 30, .group = 1, .retries = 2},
      node(0),
      node(2),
      node(9),
  });
}

/// Job 11 may not pass job 6 while those that come after it are suspended; once they go on, job 6
/// starts so late that it may.
TEST(EngineProperty, WhoMayPassOnceOthersGoOnIsNotForgotten) {
  expect_restarts_change_nothing({
      {.kind = Act::Kind::Node,
       .percent = 30,
       .limit = 30,
       .preemption = Preemption(3),
       .retries = 2},
      {.gpus = 1,
       .percent = 30,
       .priority = 5,
       .preemption = Preemption(3),
       .retries = 2,
       .after = 3,
       .tasks = 4},
      {.gpus = 1, .percent = 30, .preemption = Preemption(2), .group = 1, .retries = 1},
      {.kind = Act::Kind::Reports, .limit = 600},
      {.which = 15, .gpus = 3, .limit = 600, .preemption = Preemption(2), .group = 2, .retries = 2},
      {.which = 15,
       .gpus = 4,
       .percent = 50,
       .gigabytes = 1,
       .limit = 30,
       .preemption = Preemption(1),
       .tasks = 4},
      {.gpus = 2, .percent = 30, .limit = 30, .preemption = Preemption(1), .begin = 30},
      {.kind = Act::Kind::Wait, .which = 2},
      {.gpus = 1, .percent = 50, .limit = 600, .preemption = Preemption(2)},
  });
}

RC_GTEST_PROP(EngineProperty, TheSameActsGiveTheSameDecisions, ()) {
  const Order order = any_order();
  World one(order);
  World other(order);
  for (const Act& act : *rc::gen::container<std::vector<Act>>(any_act())) {
    one.act(act);
    other.act(act);
    const auto a = one.state().list({});
    const auto b = other.state().list({});
    RC_ASSERT(std::ranges::equal(a, b, [](const Job* x, const Job* y) { return *x == *y; }));
  }
}

}  // namespace
}  // namespace gflow::engine
