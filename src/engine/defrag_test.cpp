// SPDX-License-Identifier: Apache-2.0
// Which moves would start jobs that wait; and whether what a plan says comes true.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/machine_for_tests.h"
#include "core/principal.h"
#include "engine/step.h"
#include "engine/world_test.h"

namespace gflow::engine::defrag_tests {
namespace {

using placement::DemandIndex;
using placement::Ledger;
using placement::NodeIndex;
using placement::Placement;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

std::string text_of(const std::vector<Allocation>& parts) {
  std::string text;
  for (const Allocation& part : parts) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : "+", part.node, fmt::join(part.gpus, ","));
  }
  return text;
}

struct Asks {
  int gpus = 1;
  int percent = 100;
  int gigabytes = 0;
  int nodes = 1;
  int priority = kDefaultPriority;
  Preemption preemption = Preemption::None;
};

class DefragTest : public testing::Test {
 protected:
  /// So many nodes n0, n1, ... of so many GPUs with 16 GiB.
  explicit DefragTest(int nodes = 2, int gpus = 4) : state(policy(), "boot") {
    state.restored(JobId(1));
    event::NodesChanged there;
    for (int i = 0; i < nodes; ++i) {
      there.nodes.push_back(
          machine_with_gpus(fmt::format("n{}", i), gpus, "NVIDIA T4", Memory::gib(16)));
    }
    tell(there);
  }
  static Policy policy() {
    Policy policy;
    policy.order.order = Order::Submission;
    policy.sharing.max_jobs = 4;
    return policy;
  }
  void tell(const Event& event) {
    for (const Effect& effect : step(state, event, now)) {
      const auto* launch = std::get_if<effect::Launch>(&effect);
      if (launch == nullptr) continue;
      (void)step(
          state, event::AttemptStarted{launch->order->job, launch->order->attempt, 100}, now);
    }
  }
  JobId submit(const Asks& asks) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.request.gpus = asks.gpus;
    spec.request.nodes = asks.nodes;
    spec.request.gpu_memory = Memory::gib(asks.gigabytes);
    if (asks.percent < 100) {
      spec.request.mode = GpuMode::Fraction;
      spec.request.share = Share::percent(asks.percent);
    }
    spec.priority = asks.priority;
    spec.preemption = asks.preemption;
    const JobId id = state.next_id();
    tell(event::Submit{{spec}, system_principal()});
    return id;
  }
  void pass(seconds time) {
    now.mono += time;
    now.wall += time;
  }
  void end(JobId id, EndReason reason = EndReason::Exited) {
    Outcome outcome;
    outcome.reason = reason;
    outcome.exit_code = 0;
    tell(event::AttemptEnded{id, 1, outcome});
  }
  void drain(const std::string& node, int gpu) {
    tell(event::Drain{{.node = node, .gpu = gpu}, false, system_principal()});
  }
  /// "9 to n0:0,1 after 3 from n1:0 to n1:2 (600 s); 10 no_move_helps"
  [[nodiscard]] std::string plans(std::size_t most = 100) const {
    std::string text;
    for (const DefragPlan& plan : state.defrag(most, now)) {
      text += fmt::format("{}{} ", text.empty() ? "" : "; ", plan.job.value);
      if (plan.outcome != DefragOutcome::Moves) text += defrag_outcome_name(plan.outcome);
      if (!plan.to.empty()) text += "to " + text_of(plan.to);
      if (plan.behind) text += fmt::format(" behind {}", plan.behind->value);
      for (const DefragMove& move : plan.moves) {
        text += fmt::format(" after {} from {} to {} ({} s)",
                            move.job.value,
                            text_of(move.from),
                            text_of(move.to),
                            move.lost_time.count());
      }
    }
    return text;
  }
  /// Two nodes with two of four GPUs free each, and 4, which wants four; 1 and 3 may move.
  void make_pieces() {
    (void)submit({.gpus = 2, .preemption = Preemption::Requeue});
    const JobId between = submit({.gpus = 2});
    (void)submit({.gpus = 2, .preemption = Preemption::Requeue});
    end(between);
    (void)submit({.gpus = 4});
    ASSERT_EQ(plans(), "4 to n0:0,1,2,3 after 1 from n0:0,1 to n1:2,3 (0 s)");
  }
  /// "1 3", who moves; or why nobody does.
  std::string apply(JobId job,
                    const std::vector<JobId>& moves,
                    const Principal& by = system_principal()) {
    std::string said = "no answer";
    for (const Effect& effect : step(state, event::ApplyDefrag{job, moves, 100, by}, now)) {
      const auto* answer = std::get_if<effect::Answer>(&effect);
      if (answer == nullptr) continue;
      said = answer->jobs ? "" : answer->jobs.error().message;
      for (const JobId id : answer->jobs.value_or(std::vector<JobId>())) {
        said += fmt::format("{}{}", said.empty() ? "" : " ", id.value);
      }
    }
    return said;
  }
  [[nodiscard]] std::string at(JobId id) const {
    return text_of(allocations_of(*attempt_of(*state.find(id))));
  }

  Now now{.wall = WallTime(hours(1)), .mono = MonoTime(hours(1))};
  State state;
};

constexpr auto kMay = Preemption::Requeue;

TEST_F(DefragTest, OfAnEmptyQueueIsEmpty) {
  EXPECT_EQ(plans(), "");
  (void)submit({.gpus = 4});
  EXPECT_EQ(plans(), "") << "it runs";
}

/// Two nodes with two of four GPUs free each, and one job that wants four.
TEST_F(DefragTest, FreesANode) {
  const JobId first = submit({.gpus = 2, .preemption = kMay});
  const JobId between = submit({.gpus = 2});
  const JobId second = submit({.gpus = 2, .preemption = kMay});
  end(between);
  ASSERT_EQ(at(first) + " " + at(second), "n0:0,1 n1:0,1");
  pass(minutes(10));
  (void)submit({.gpus = 4});
  // Both ran as long: the first node is cleared.
  EXPECT_EQ(plans(), "4 to n0:0,1,2,3 after 1 from n0:0,1 to n1:2,3 (600 s)");
}

TEST_F(DefragTest, MovesWhoLosesLeast) {
  (void)submit({.gpus = 2, .preemption = kMay});
  pass(minutes(10));
  const JobId between = submit({.gpus = 2});
  (void)submit({.gpus = 2, .preemption = kMay});
  end(between);
  pass(minutes(5));
  (void)submit({.gpus = 4});
  EXPECT_EQ(plans(), "4 to n1:0,1,2,3 after 3 from n1:0,1 to n0:2,3 (300 s)");
}

/// What was allowed is to be suspended: a suspended job keeps its memory where it is.
TEST_F(DefragTest, MovesNobodyWhoDoesNotAllowIt) {
  (void)submit({.gpus = 2, .gigabytes = 8, .preemption = Preemption::Suspend});
  const JobId between = submit({.gpus = 2});
  (void)submit({.gpus = 2});
  end(between);
  (void)submit({.gpus = 4});
  EXPECT_EQ(plans(), "4 nothing_movable");
}

/// It is on its way to another GPU, and cannot be told to end until it is there.
TEST_F(DefragTest, MovesNobodyWhoMovesAlready) {
  event::NodesChanged there;
  for (const char* name : {"n0", "n1"}) {
    Machine machine = machine_with_gpus(name, 4, "NVIDIA T4", Memory::gib(16));
    machine.parks = true;
    machine.memory = Memory::gib(100);
    for (Device& device : machine.devices)
      device.uuid = fmt::format("GPU-{}-{}", name, device.index);
    there.nodes.push_back(std::move(machine));
  }
  tell(there);
  const JobId first = submit({.gpus = 1, .preemption = kMay});
  const JobId between = submit({.gpus = 3});
  (void)submit({.gpus = 2});
  end(between);
  tell(event::Move{first, 1, true, system_principal()});
  ASSERT_EQ(at(first), "n0:0,1");
  (void)submit({.gpus = 4});
  EXPECT_EQ(plans(), "4 nothing_movable");
  tell(event::MoveEnded{first, 1, ""});
  EXPECT_EQ(plans(), "4 to n0:0,1,2,3 after 1 from n0:1 to n1:2 (0 s)");
}

TEST_F(DefragTest, SaysWhatIsNotThere) {
  (void)submit({.gpus = 4, .preemption = kMay});
  (void)submit({.gpus = 1, .preemption = kMay});
  (void)submit({.gpus = 4});
  EXPECT_EQ(plans(), "3 not_enough_free");
}

/// The one that could move has three GPUs, and has nowhere to go.
TEST_F(DefragTest, SaysThatNoMoveHelps) {
  (void)submit({.gpus = 3, .preemption = kMay});
  (void)submit({.gpus = 2});
  (void)submit({.gpus = 4});
  EXPECT_EQ(plans(), "3 not_enough_free");
  (void)submit({.gpus = 3});
  EXPECT_EQ(plans(), "3 not_enough_free; 4 no_move_helps");
}

class OneNodeTest : public DefragTest {
 protected:
  OneNodeTest() : DefragTest(1, 4) {}
  /// Halves of GPUs 0..3 that may be moved, one each, of which the first ran longest.
  void take_halves() {
    std::vector<JobId> gone;
    for (int i = 0; i < 4; ++i) {
      const JobId stays = submit({.percent = 50, .preemption = kMay});
      const JobId ends = submit({.percent = 50});
      ASSERT_EQ(at(stays), at(ends));
      gone.push_back(ends);
      pass(minutes(1));
    }
    for (const JobId id : gone) end(id);
  }
};

/// Two GPUs are wanted and four are half used: two moves, of those that ran least.
TEST_F(OneNodeTest, PutsHalvesTogether) {
  take_halves();
  (void)submit({.gpus = 2});
  EXPECT_EQ(plans(),
            "9 to n0:2,3 after 5 from n0:2 to n0:0 (120 s) after 7 from n0:3 to n0:1 (60 s)");
}

/// Of a GPU all memory is wanted, and two have half of theirs.
TEST_F(OneNodeTest, PutsMemoryTogether) {
  drain("n0", 2);
  drain("n0", 3);
  (void)submit({.percent = 10, .gigabytes = 8, .preemption = kMay});
  const JobId gone = submit({.percent = 10, .gigabytes = 8});
  (void)submit({.percent = 10, .gigabytes = 8, .preemption = kMay});
  end(gone);
  pass(minutes(1));
  (void)submit({.percent = 10, .gigabytes = 16});
  EXPECT_EQ(plans(), "4 to n0:0 after 1 from n0:0 to n0:1 (60 s)");
}

/// Each plan begins where those before it end, and nobody moves twice.
TEST_F(OneNodeTest, PlansFollowEachOther) {
  take_halves();
  (void)submit({.gpus = 1});
  (void)submit({.gpus = 1});
  (void)submit({.gpus = 1});
  EXPECT_EQ(plans(),
            "9 to n0:3 after 7 from n0:3 to n0:0 (60 s); "
            "10 to n0:2 after 5 from n0:2 to n0:1 (120 s); 11 not_enough_free");
  EXPECT_EQ(plans(1), "9 to n0:3 after 7 from n0:3 to n0:0 (60 s)");
}

/// Three have to move where sets of two do not do: what is found is a set that clears the devices
/// which are cheapest to clear.
TEST_F(OneNodeTest, MovesMoreThanTwo) {
  std::vector<JobId> gone;
  for (int gpu = 0; gpu < 4; ++gpu) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      const JobId id = submit({.percent = 25, .preemption = kMay});
      ASSERT_EQ(at(id), fmt::format("n0:{}", gpu));
      if (gpu == 3 ? quarter == 3 : quarter == 0) gone.push_back(id);
    }
    pass(minutes(1));
  }
  for (const JobId id : gone) end(id);
  (void)submit({.gpus = 1});
  EXPECT_EQ(plans(),
            "17 to n0:3 after 13 from n0:3 to n0:0 (60 s) after 14 from n0:3 to n0:1 (60 s) "
            "after 15 from n0:3 to n0:2 (60 s)");
}

/// It is for nodes, and one of them fits already.
TEST_F(DefragTest, ClearsTheNodesThatAJobLacks) {
  Machine third = machine_with_gpus("n2", 4, "NVIDIA T4", Memory::gib(16));
  (void)submit({.gpus = 4});
  tell(event::NodesChanged{{third}});
  (void)submit({.gpus = 1, .preemption = kMay});
  ASSERT_EQ(at(JobId(2)), "n1:0");
  (void)submit({.gpus = 2});
  ASSERT_EQ(at(JobId(3)), "n1:1,2");
  (void)submit({.gpus = 3});
  ASSERT_EQ(at(JobId(4)), "n2:0,1,2");
  end(JobId(3));
  end(JobId(1));
  pass(minutes(1));
  (void)submit({.gpus = 4, .nodes = 2});
  EXPECT_EQ(plans(), "5 to n0:0,1,2,3+n1:0,1,2,3 after 2 from n1:0 to n2:3 (60 s)");
}

TEST_F(DefragTest, SaysWhatElseAJobWaitsFor) {
  Policy limited = policy();
  limited.gpu_quota.per_user = 4;
  (void)submit({.gpus = 4, .preemption = kMay});
  tell(event::Configure{limited});
  (void)submit({.gpus = 2});
  EXPECT_EQ(plans(), "2 waits_for_more");
}

/// A job of higher priority keeps its place, and waits for what nobody can move.
TEST_F(DefragTest, NamesTheJobWhosePlaceIsKept) {
  (void)submit({.gpus = 2, .preemption = kMay});
  const JobId between = submit({.gpus = 2});
  (void)submit({.gpus = 2, .priority = 200, .preemption = kMay});
  end(between);
  (void)submit({.gpus = 4, .nodes = 2, .priority = 100});
  (void)submit({.gpus = 4});
  EXPECT_EQ(plans(),
            "4 not_enough_free; 5 to n0:0,1,2,3 behind 4 after 1 from n0:0,1 to n1:2,3 (0 s)");
  EXPECT_EQ(apply(JobId(5), {JobId(1)}),
            "job 5 might not start: one ahead of it keeps its place; give it a priority above that "
            "one");
}

/// Nothing is decided, nothing changes, and what it looks at is bounded.
TEST_F(OneNodeTest, CostsNothingToDecide) {
  take_halves();
  for (int i = 0; i < 500; ++i) (void)submit({.gpus = 1 + i % 4});
  const std::uint64_t looks = state.looks();
  const std::uint64_t passes = state.passes();
  const std::uint64_t revision = state.revision();
  const std::string first = plans(1000);
  EXPECT_EQ(plans(1000), first);
  EXPECT_EQ(state.looks(), looks);
  EXPECT_EQ(state.passes(), passes);
  EXPECT_EQ(state.revision(), revision);
  EXPECT_EQ(state.check(), "");
}

/// It is done as it was told, and who moves starts where there is room.
TEST_F(DefragTest, MovesThoseOfWhomItWasTold) {
  make_pieces();
  EXPECT_EQ(apply(JobId(4), {JobId(1)}), "1");
  EXPECT_EQ(state.find(JobId(4))->spec.priority, kDefaultPriority + 1);
  EXPECT_EQ(state.find(JobId(1))->spec.priority, kDefaultPriority);
  EXPECT_TRUE(std::get<Running>(state.find(JobId(1))->state).stop);
  EXPECT_FALSE(std::get<Running>(state.find(JobId(3))->state).stop);
  end(JobId(1), EndReason::Preempted);
  EXPECT_EQ(at(JobId(4)) + " " + at(JobId(1)), "n0:0,1,2,3 n1:2,3");
  EXPECT_EQ(state.find(JobId(1))->attempts, 2);
}

TEST_F(DefragTest, IsNotDoneOtherwiseThanItWasTold) {
  make_pieces();
  Principal bob;
  bob.name = "bob";
  bob.uid = 1001;
  Principal alice;
  alice.name = "alice";
  alice.uid = 1000;
  const std::string before = plans();
  EXPECT_EQ(apply(JobId(4), {JobId(1), JobId(3)}),
            "these moves would not start job 4 now: 'gctl defrag' shows the moves there are");
  EXPECT_EQ(apply(JobId(4), {JobId(1), JobId(1)}), apply(JobId(4), {}));
  EXPECT_EQ(apply(JobId(4), {JobId(1)}, bob), "job 4 belongs to alice");
  EXPECT_NE(apply(JobId(4), {JobId(1)}, alice).find("priority"), std::string::npos);
  EXPECT_EQ(apply(JobId(99), {JobId(1)}), "there is no job 99; 'gqueue -a' lists all jobs");
  EXPECT_EQ(apply(JobId(1), {JobId(3)}),
            "no moves would start job 1 now: 'gctl defrag' shows the moves there are");
  EXPECT_EQ(plans(), before);
  Policy rigid = policy();
  rigid.preempt = false;
  tell(event::Configure{rigid});
  EXPECT_EQ(apply(JobId(4), {JobId(1)}),
            "no job is stopped to make room here: [scheduler] preempt is false");
  tell(event::Configure{policy()});
  EXPECT_EQ(plans(), before);
  (void)submit({.gpus = 4});
  EXPECT_EQ(apply(JobId(5), {JobId(3)}), "the moves for job 4 come before those for job 5");
  EXPECT_EQ(apply(JobId(4), {JobId(1)}), "1");
  EXPECT_EQ(apply(JobId(4), {JobId(1)}),
            "room is being made for job 4: ask again when it has started");
}

TEST_F(DefragTest, NobodyWithTheHighestPriorityMoves) {
  (void)submit({.gpus = 2, .priority = kMaxPriority, .preemption = kMay});
  const JobId between = submit({.gpus = 2});
  (void)submit({.gpus = 2});
  end(between);
  (void)submit({.gpus = 4});
  ASSERT_EQ(plans(), "4 to n0:0,1,2,3 after 1 from n0:0,1 to n1:2,3 (0 s)");
  EXPECT_EQ(apply(JobId(4), {JobId(1)}), "job 1 has the highest priority, and moves for nobody");
}

// What a plan says, done on a ledger of its own.

std::vector<Placement> placed(const Ledger& ledger, const std::vector<Allocation>& parts) {
  std::vector<Placement> placements;
  for (const Allocation& part : parts) placements.push_back({*ledger.find(part.node), part.gpus});
  return placements;
}

/// Takes it where it is told: why that is not possible, or "".
std::string start(Ledger& ledger, const Job& job, const std::vector<Allocation>& to) {
  const auto& request = job.spec.request;
  const DemandIndex demand = ledger.intern(placement::demand_of(request));
  if (to.size() != static_cast<std::size_t>(request.nodes)) return "not its number of nodes";
  for (const Placement& part : placed(ledger, to)) {
    if (part.devices.size() != static_cast<std::size_t>(request.gpus)) return "not its GPUs";
    if (!ledger.fits(demand, part.node)) return "no room on the node";
    const auto& devices = ledger.state(part.node).devices;
    for (const int gpu : part.devices) {
      const auto index = static_cast<std::size_t>(gpu);
      if (index >= devices.size() || !ledger.device_fits(demand, devices[index]))
        return fmt::format("no room on GPU {}", gpu);
    }
    ledger.take(demand, part);
  }
  return ledger.check();
}

void stop(Ledger& ledger, const Job& job) {
  const DemandIndex demand = ledger.intern(placement::demand_of(job.spec));
  for (const Placement& part : placed(ledger, allocations_of(*attempt_of(job)))) {
    ledger.give_back(demand, part);
  }
}

std::string carry_out(Ledger& ledger, const State& state, const DefragPlan& plan) {
  for (const DefragMove& move : plan.moves) {
    const Job& job = *state.find(move.job);
    const auto* running = std::get_if<Running>(&job.state);
    if (running == nullptr || running->stop || running->suspended) return "it does not run";
    if (job.spec.preemption != Preemption::Requeue) return "it may not be moved";
    if (text_of(move.from) != text_of(allocations_of(running->attempt))) return "it is elsewhere";
    if (move.to == move.from) return "it stays";
    stop(ledger, job);
  }
  for (const DefragMove& move : plan.moves) {
    std::string trouble = start(ledger, *state.find(move.job), move.to);
    if (!trouble.empty()) return fmt::format("job {}: {}", move.job.value, trouble);
  }
  return start(ledger, *state.find(plan.job), plan.to);
}

/// All ways to have so many of a node's GPUs.
std::vector<std::vector<int>> choices(int gpus) {
  std::vector<std::vector<int>> found;
  for (unsigned set = 0; set < 1U << world::kGpus; ++set) {
    if (std::popcount(set) != gpus) continue;
    std::vector<int>& devices = found.emplace_back();
    for (int gpu = 0; gpu < world::kGpus; ++gpu) {
      if ((set >> gpu & 1U) != 0) devices.push_back(gpu);
    }
  }
  return found;
}

/// Whether these fit one after the other somehow, by trying all there is.
bool all_fit(const Ledger& ledger,
             std::vector<placement::NodeState> nodes,
             std::span<const DemandIndex> demands) {
  if (demands.empty()) return true;
  const DemandIndex demand = demands.front();
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    auto& state = nodes[static_cast<std::size_t>(node)];
    if (!ledger.fits_state(demand, node, state)) continue;
    for (const auto& gpus : choices(ledger.demand(demand).gpus)) {
      const bool fits = std::ranges::all_of(gpus, [&](int gpu) {
        const auto at = static_cast<std::size_t>(gpu);
        return at < state.devices.size() && ledger.device_fits(demand, state.devices[at]);
      });
      if (!fits) continue;
      const auto before = state;
      ledger.take_on(state, demand, gpus);
      if (all_fit(ledger, nodes, demands.subspan(1))) return true;
      state = before;
    }
  }
  return false;
}

std::int64_t cost_of(const State& state, const DefragPlan& plan) {
  std::int64_t cost = 0;
  for (const DefragMove& move : plan.moves) {
    cost += move.lost_time.count() * gpu_parts_of(state.find(move.job)->spec.request);
  }
  return cost;
}

/// What the cheapest single move costs that would do, if there is one.
std::optional<std::int64_t> cheapest_move(const world::World& world, JobId waiting) {
  const State& state = world.state();
  std::optional<std::int64_t> best;
  for (const Job* job : world.jobs(Status::Running)) {
    const auto& running = std::get<Running>(job->state);
    if (job->spec.preemption != Preemption::Requeue || running.stop || running.suspended) continue;
    if (job->spec.request.nodes != 1) continue;
    const NodeIndex node = *state.ledger().find(running.attempt.allocation.node);
    if (!state.ledger().state(node).open) continue;
    Ledger ledger = state.ledger();
    stop(ledger, *job);
    std::vector<placement::NodeState> nodes;
    for (NodeIndex at = 0; at < ledger.size(); ++at) nodes.push_back(ledger.state(at));
    const std::array demands = {ledger.intern(placement::demand_of(state.find(waiting)->spec)),
                                ledger.intern(placement::demand_of(job->spec))};
    if (!all_fit(ledger, nodes, demands)) continue;
    const auto ran = std::chrono::floor<seconds>(run_time_of(*job, world.now().mono)).count();
    const std::int64_t cost = ran * gpu_parts_of(job->spec.request);
    best = best ? std::min(*best, cost) : cost;
  }
  return best;
}

/// Small jobs come, half of them end, then large ones come; and now and then something happens.
world::Act act_of(int turn, std::mt19937& draw) {
  using Kind = world::Act::Kind;
  const auto below = [&draw](unsigned most) { return static_cast<int>(draw() % most); };
  constexpr std::array kPreemptions = {
      Preemption::Requeue, Preemption::Requeue, Preemption::Requeue, Preemption::None};
  constexpr std::array kOthers = {Kind::Wait, Kind::Wait, Kind::Drain, Kind::Node, Kind::Suspend};
  world::Act act{.kind = Kind::Submit,
                 .which = below(20),
                 .gpus = 1,
                 .percent = std::array{100, 50, 50, 30, 30}.at(draw() % 5),
                 .gigabytes = below(7),
                 .preemption = kPreemptions.at(draw() % kPreemptions.size())};
  if (below(8) == 0) {
    act.kind = kOthers.at(draw() % kOthers.size());
  } else if (turn >= 20 && turn < 32) {
    act.kind = Kind::End;
  } else if (turn >= 32) {
    act.gpus = 1 + below(world::kGpus - 1);
    act.nodes = below(6) == 0 ? world::kNodes : 1;
    act.percent = 100;
    act.gigabytes = below(17);
  }
  return act;
}

/// How often something was found, and how often by more than one move.
struct Tried {
  int plans = 0;
  int larger = 0;
  int in_vain = 0;
};

void check_plans(const world::World& world, Tried& tried) {
  const State& state = world.state();
  Ledger ledger = state.ledger();
  for (const DefragPlan& plan : state.defrag(3, world.now())) {
    const bool is_first = ledger.version() == state.ledger().version();
    const Job& job = *state.find(plan.job);
    const bool is_moved = plan.outcome == DefragOutcome::Moves;
    if (is_first && job.spec.request.nodes == 1 && plan.outcome != DefragOutcome::HasRoom &&
        plan.outcome != DefragOutcome::WaitsForMore) {
      const auto best = cheapest_move(world, plan.job);
      ASSERT_TRUE(is_moved || !best) << "job " << plan.job.value << " for " << *best;
      if (best) {
        ASSERT_LE(cost_of(state, plan), *best) << "job " << plan.job.value;
      }
      tried.in_vain += is_moved ? 0 : 1;
    }
    if (!is_moved) continue;
    ASSERT_TRUE(!is_first || !plan.moves.empty());
    ASSERT_EQ(carry_out(ledger, state, plan), "") << "job " << plan.job.value;
    ++tried.plans;
    if (plan.moves.size() > 1) ++tried.larger;
  }
}

TEST(Defrag, WhatAPlanSaysComesTrue) {
  Tried tried;
  for (unsigned seed = 0; seed < 80; ++seed) {
    std::mt19937 draw(seed);
    world::World world(seed % 2 == 0 ? Order::Submission : Order::Learned);
    for (int turn = 0; turn < 38; ++turn) {
      world.act(act_of(turn, draw));
      if (turn >= 32) check_plans(world, tried);
      if (testing::Test::HasFatalFailure()) {
        FAIL() << "seed " << seed << ", turn " << turn << "\n" << world.told();
      }
    }
  }
  EXPECT_GT(tried.plans, 100);
  EXPECT_GT(tried.larger, 10);
  EXPECT_GT(tried.in_vain, 100);
}

/// Who waits starts where it was told, once those who move have stopped, and they start elsewhere.
TEST(Defrag, WhatIsAppliedComesTrue) {
  int applied = 0;
  int moved = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    std::mt19937 draw(seed);
    world::World world(seed % 2 == 0 ? Order::Submission : Order::Learned);
    for (int turn = 0; turn < 38; ++turn) world.act(act_of(turn, draw));
    world.heal();
    const auto plans = world.state().defrag(100, world.now());
    const auto plan =
        std::ranges::find_if(plans, [](const DefragPlan& one) { return !one.moves.empty(); });
    if (plan == plans.end() || plan->is_behind) continue;
    std::vector<JobId> moves;
    for (const DefragMove& move : plan->moves) moves.push_back(move.job);
    const std::string before = world.told();
    world.tell(event::ApplyDefrag{plan->job, moves, 100, system_principal()});
    ASSERT_EQ(world.refused(), "") << "seed " << seed << "\n" << before;
    const Job& job = *world.state().find(plan->job);
    ASSERT_TRUE(is_active(job)) << "seed " << seed << "\n" << before << "\n" << world.told();
    ++applied;
    for (const JobId id : moves) {
      const Job& mover = *world.state().find(id);
      ASSERT_TRUE(!is_active(mover) || mover.attempts > 1) << "seed " << seed;
      if (is_active(mover)) ++moved;
    }
  }
  EXPECT_GT(applied, 20);
  EXPECT_GT(moved, 20);
}

}  // namespace
}  // namespace gflow::engine::defrag_tests
