// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/machine_for_tests.h"
#include "core/principal.h"
#include "core/stop.h"
#include "engine/step.h"

/// A job that leaves its GPU idle lends it to one that gives it back.
namespace gflow::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

Policy lending() {
  Policy policy;
  policy.lend_idle_after = minutes(60);
  policy.preempt = false;
  return policy;
}

/// A node with one GPU of 80 GiB, which job 1 has as a whole.
class Lending : public testing::Test {
 protected:
  Lending() : machine(machine_with_gpus("n0", 1, "NVIDIA H100 80GB HBM3", Memory::gib(80))) {
    machine.parks = true;
    machine.memory = Memory::gib(200);
    machine.cpus = 8;
    machine.devices.front().uuid = "GPU-1";
    state.restored(JobId(1));
    used(50);
    JobSpec owner = spec_of(Preemption::None);
    owner.request.cpus = 4;
    submit(owner);
    started(first);
  }

  static JobSpec spec_of(Preemption preemption) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.preemption = preemption;
    spec.request.gpus = 1;
    return spec;
  }
  JobId submit(const JobSpec& spec) {
    const JobId id = state.next_id();
    tell(event::Submit{{spec}, system_principal()});
    return id;
  }
  JobId submit_borrower() { return submit(spec_of(Preemption::Requeue)); }
  void started(JobId id, bool watches = true) {
    tell(event::AttemptStarted{id, attempt_of(*state.find(id))->number, 42, watches});
  }
  /// A second one, of which the next reading tells.
  void add_gpu() {
    machine.devices.push_back(machine.devices.front());
    machine.devices.back().index = 1;
    machine.devices.back().uuid = "GPU-2";
  }
  /// A reading.
  void used(std::optional<int> percent) {
    machine.devices.front().utilization_percent = percent;
    tell(event::NodesChanged{{machine}});
  }
  void idle_for(seconds time) {
    used(0);
    pass(time);
  }
  void pass(seconds time) {
    now.mono += time;
    now.wall += time;
    tell(event::Tick{});
  }
  void tell(const Event& event) {
    lent = resumed = false;
    for (const Effect& effect : step(state, event, now)) {
      if (std::holds_alternative<effect::Suspend>(effect)) lent = true;
      if (std::holds_alternative<effect::Resume>(effect)) resumed = true;
      if (const auto* answer = std::get_if<effect::Answer>(&effect)) {
        refused = answer->jobs ? "" : answer->jobs.error().message;
      }
      if (const auto* wake = std::get_if<effect::WakeAt>(&effect)) wakes = wake->mono;
    }
    EXPECT_EQ(state.check(), "");
  }
  void parked() {
    tell(event::ParkingChanged{first, 1, {.how = Parking::Parked, .memory = Memory::gib(20)}});
  }
  void is_back() { tell(event::ParkingChanged{first, 1, {}}); }
  void wanted() { tell(event::GpuWanted{first, 1}); }
  void end(JobId id, EndReason reason = EndReason::Exited) {
    tell(event::AttemptEnded{id, attempt_of(*state.find(id))->number, Outcome{.reason = reason}});
  }
  /// One that has the GPU.
  JobId borrow() {
    idle_for(minutes(60));
    const JobId other = submit_borrower();
    parked();
    started(other);
    EXPECT_EQ(status(other), Status::Running);
    return other;
  }

  [[nodiscard]] Status status(JobId id) const { return status_of(*state.find(id)); }
  [[nodiscard]] const Running& owner() const { return std::get<Running>(state.find(first)->state); }

  Machine machine;
  State state{lending(), "boot"};
  Now now{.wall = WallTime(std::chrono::hours(1)), .mono = MonoTime(std::chrono::hours(1))};
  bool lent = false;
  bool resumed = false;
  std::optional<MonoTime> wakes;
  std::string refused;  ///< what was asked last
  const JobId first{1};
};

TEST_F(Lending, OnceItIsIdleForLongEnoughAndSomebodyWaits) {
  const JobId other = submit_borrower();
  EXPECT_FALSE(lent);
  used(0);
  EXPECT_EQ(wakes, now.mono + minutes(60));
  pass(minutes(60) - seconds(1));
  EXPECT_FALSE(lent);
  EXPECT_EQ(state.gpu_idle(*state.find(first), now), minutes(60) - seconds(1));
  pass(seconds(1));
  EXPECT_TRUE(lent);
  EXPECT_EQ(status(first), Status::Running);
  EXPECT_EQ(owner().parked, (ParkedMemory{.how = Parking::Begun, .memory = Memory::gib(80)}));
  EXPECT_EQ(status(other), Status::Queued);
  parked();
  EXPECT_EQ(status(other), Status::Starting);
  EXPECT_EQ(state.totals().cpus_free, 4) << "it runs on";
  EXPECT_EQ(state.totals().memory_free, Memory::gib(120));
  EXPECT_EQ(state.gpu_idle(*state.find(first), now), std::nullopt);
}

TEST_F(Lending, NotWhereNobodyWaits) {
  idle_for(minutes(120));
  EXPECT_FALSE(lent);
}

TEST_F(Lending, NotToOneThatWouldNotGiveItBack) {
  const JobId kept = submit(spec_of(Preemption::None));
  EXPECT_FALSE(state.could_borrow(state.find(kept)->spec));
  idle_for(minutes(60));
  EXPECT_FALSE(lent);
  EXPECT_TRUE(state.could_borrow(state.find(kept)->spec));
  EXPECT_FALSE(state.could_borrow(spec_of(Preemption::Requeue))) << "it does";
  // Nor does such a one take what is lent to others.
  const JobId other = submit_borrower();
  EXPECT_TRUE(lent);
  parked();
  EXPECT_EQ(status(other), Status::Starting);
  started(other);
  end(other);
  EXPECT_EQ(status(kept), Status::Queued);
  const std::vector<Blocker> blockers = state.blockers(kept, now);
  ASSERT_FALSE(blockers.empty());
  const auto& why = std::get<blocker::Gpus>(blockers.front());
  ASSERT_EQ(why.holders.size(), 1U);
  EXPECT_EQ(why.holders.front().job, first);
}

TEST_F(Lending, WhatIsUsedOrNotToldOfIsNotIdle) {
  submit_borrower();
  idle_for(minutes(59));
  used(1);
  idle_for(minutes(59));
  EXPECT_FALSE(lent);
  used(std::nullopt);
  idle_for(minutes(59));
  EXPECT_FALSE(lent);
  pass(minutes(1));
  EXPECT_TRUE(lent);
}

TEST_F(Lending, OnlyByOneOfWhichItIsKnownWhenItWantsItBack) {
  started(first, false);
  submit_borrower();
  idle_for(minutes(90));
  EXPECT_FALSE(lent);
  started(first, true);
  EXPECT_TRUE(lent);
}

TEST_F(Lending, WhoeverBorrowsMakesRoomOnceItIsWanted) {
  const JobId other = borrow();
  wanted();
  EXPECT_EQ(status(first), Status::Suspended);
  ASSERT_EQ(status(other), Status::Completing);
  EXPECT_EQ(stop_of(*state.find(other))->reason, EndReason::Preempted);
  EXPECT_FALSE(resumed);
  end(other, EndReason::Preempted);
  EXPECT_TRUE(resumed);
  EXPECT_EQ(status(first), Status::Running);
  EXPECT_FALSE(owner().lends);
  EXPECT_EQ(owner().parked.how, Parking::Ending);
  EXPECT_EQ(status(other), Status::Queued) << "it waits for its turn";
  is_back();
  EXPECT_EQ(owner().parked, ParkedMemory{});
  EXPECT_EQ(state.totals().memory_free, Memory::gib(200));
}

/// Whatever its priority: it is its own.
TEST_F(Lending, ItComesBackBeforeAllThatWait) {
  const JobId other = borrow();
  JobSpec urgent = spec_of(Preemption::None);
  urgent.priority = 200;
  const JobId waiting = submit(urgent);
  EXPECT_EQ(status(other), Status::Running);
  wanted();
  end(other, EndReason::Preempted);
  EXPECT_TRUE(resumed);
  EXPECT_EQ(status(waiting), Status::Queued);
}

TEST_F(Lending, OneAfterTheOtherMayBorrowMeanwhile) {
  const JobId other = borrow();
  const JobId third = submit_borrower();
  end(other);
  EXPECT_EQ(status(third), Status::Starting) << "and nothing is given back in between";
  EXPECT_FALSE(resumed);
}

TEST_F(Lending, WhatIsFreeIsGivenBackAtOnce) {
  const JobId other = borrow();
  end(other);
  EXPECT_FALSE(resumed) << "nobody wants it";
  wanted();
  EXPECT_TRUE(resumed);
  EXPECT_EQ(status(first), Status::Running);
}

TEST_F(Lending, WantedOnItsWayItComesBackWhenItIsThere) {
  idle_for(minutes(60));
  const JobId other = submit_borrower();
  wanted();
  EXPECT_EQ(status(first), Status::Suspended);
  EXPECT_FALSE(resumed);
  parked();
  EXPECT_TRUE(resumed);
  EXPECT_EQ(status(other), Status::Queued);
}

/// What is wanted counts as used, whether it is then or not.
TEST_F(Lending, ItIsNotLentAgainAtOnce) {
  const JobId other = borrow();
  wanted();
  end(other, EndReason::Preempted);
  is_back();
  pass(minutes(59));
  EXPECT_FALSE(lent);
  pass(minutes(1));
  EXPECT_TRUE(lent);
}

TEST_F(Lending, WhereItCannotBeTakenAwayThatIsNotTriedAgain) {
  idle_for(minutes(60));
  const JobId other = submit_borrower();
  EXPECT_TRUE(lent);
  tell(event::ParkingChanged{first, 1, {.refused = "it uses managed memory"}});
  EXPECT_FALSE(owner().lends);
  EXPECT_EQ(owner().parked, ParkedMemory{});
  EXPECT_EQ(status(other), Status::Queued);
  pass(minutes(120));
  EXPECT_FALSE(lent);
}

TEST_F(Lending, ItsTimeLimitGoesOn) {
  JobChanges changes;
  changes.set(&JobSpec::time_limit, std::optional<seconds>(minutes(240)));
  tell(event::Update{{first}, system_principal(), changes});
  const JobId other = borrow();
  const auto ran = run_time_of(*state.find(first), now.mono);
  wanted();
  pass(minutes(10));
  EXPECT_EQ(run_time_of(*state.find(first), now.mono), ran + minutes(10));
  end(other, EndReason::Preempted);
  EXPECT_EQ(run_time_of(*state.find(first), now.mono), ran + minutes(10));
}

/// Then it stands, and whoever borrows goes on until it is resumed.
TEST_F(Lending, SuspendedByHandItWantsItWhenItIsResumed) {
  const JobId other = borrow();
  tell(event::Suspend{{first}, system_principal()});
  EXPECT_TRUE(lent) << "its processes are stopped now";
  EXPECT_EQ(owner().parked.how, Parking::Parked);
  EXPECT_EQ(status(first), Status::Suspended);
  const auto ran = run_time_of(*state.find(first), now.mono);
  pass(minutes(5));
  wanted();
  EXPECT_EQ(status(other), Status::Running);
  EXPECT_EQ(run_time_of(*state.find(first), now.mono), ran);
  tell(event::Resume{{first}, system_principal()});
  EXPECT_EQ(status(other), Status::Completing);
  pass(minutes(1));
  EXPECT_EQ(run_time_of(*state.find(first), now.mono), ran + minutes(1));
  end(other, EndReason::Preempted);
  EXPECT_TRUE(resumed);
  EXPECT_EQ(run_time_of(*state.find(first), now.mono), ran + minutes(1));
}

/// Wanted back, and suspended by hand while it waits.
TEST_F(Lending, SuspendedByHandWhileItWaitsItsGpuIsLentOn) {
  const JobId other = borrow();
  wanted();
  tell(event::Suspend{{first}, system_principal()});
  end(other, EndReason::Preempted);
  EXPECT_FALSE(resumed);
  EXPECT_EQ(status(other), Status::Starting);
  tell(event::Resume{{first}, system_principal()});
  EXPECT_EQ(status(other), Status::Completing);
}

/// There is room beside what it has declared, but it may have to be let keep its GPU.
TEST_F(Lending, NobodyIsOnItBeforeItsMemoryIsAway) {
  end(first);
  JobSpec small = spec_of(Preemption::None);
  small.request.gpu_memory = Memory::gib(10);
  const JobId owner_id = submit(small);
  started(owner_id);
  idle_for(minutes(60));
  JobSpec beside = spec_of(Preemption::Requeue);
  beside.request.gpu_memory = Memory::gib(10);
  const JobId other = submit(beside);
  EXPECT_TRUE(lent);
  EXPECT_EQ(status(other), Status::Queued);
  tell(event::ParkingChanged{owner_id, 1, {.refused = "it uses managed memory"}});
  EXPECT_EQ(status(other), Status::Queued);
}

/// Suspended before the other came to its GPU, resumed while that lends it.
TEST_F(Lending, WhoGoesOnOnALentGpuBorrowsItToo) {
  end(first);
  const JobId earlier = submit_borrower();
  started(earlier);
  tell(event::Suspend{{earlier}, system_principal()});
  tell(event::ParkingChanged{earlier, 1, {.how = Parking::Parked, .memory = Memory::gib(1)}});
  JobSpec next = spec_of(Preemption::None);
  next.request.gpu_memory = Memory::gib(10);
  const JobId lender = submit(next);
  started(lender);
  idle_for(minutes(60));
  const JobId other = submit_borrower();
  EXPECT_TRUE(lent);
  tell(event::ParkingChanged{lender, 1, {.how = Parking::Parked, .memory = Memory::gib(1)}});
  started(other);
  end(other);
  tell(event::Resume{{earlier}, system_principal()});
  EXPECT_EQ(status(earlier), Status::Running);
  tell(event::GpuWanted{lender, 1});
  EXPECT_EQ(status(earlier), Status::Completing);
}

/// Its CPUs are needed, too, which it would keep.
TEST_F(Lending, WhoMayHaveToStopIsStoppedWhereLendingIsNotEnough) {
  Policy policy = lending();
  policy.preempt = true;
  tell(event::Configure{policy});
  end(first);
  JobSpec lesser = spec_of(Preemption::Requeue);
  lesser.request.cpus = 4;
  const JobId stops = submit(lesser);
  started(stops);
  idle_for(minutes(60));
  JobSpec urgent = spec_of(Preemption::Requeue);
  urgent.request.cpus = 8;
  urgent.priority = 200;
  submit(urgent);
  EXPECT_EQ(status(stops), Status::Completing);
}

/// What one of two gives back is not given to the next.
TEST_F(Lending, OnceItIsWantedNobodyElseBorrowsIt) {
  idle_for(minutes(60));
  JobSpec half = spec_of(Preemption::Requeue);
  half.request.mode = GpuMode::Fraction;
  half.request.share = Share::percent(50);
  const JobId one = submit(half);
  const JobId two = submit(half);
  parked();
  started(one);
  started(two);
  const JobId three = submit(half);
  wanted();
  EXPECT_EQ(status(one), Status::Completing);
  EXPECT_EQ(status(two), Status::Completing);
  end(one, EndReason::Preempted);
  EXPECT_EQ(status(one), Status::Queued);
  EXPECT_EQ(status(three), Status::Queued);
  EXPECT_FALSE(resumed);
  end(two, EndReason::Preempted);
  EXPECT_TRUE(resumed);
}

/// Its owner would wait for that.
TEST_F(Lending, NotToOneThatMayTakeLongToGiveItBack) {
  idle_for(minutes(60));
  JobSpec slow = spec_of(Preemption::Requeue);
  slow.grace = minutes(6);
  submit(slow);
  EXPECT_FALSE(owner().lends);
}

TEST_F(Lending, WhoBorrowsDoesNotLend) {
  const JobId other = borrow();
  used(50);
  const JobId third = submit_borrower();
  idle_for(minutes(120));
  EXPECT_FALSE(lent);
  EXPECT_EQ(status(other), Status::Running);
  EXPECT_EQ(status(third), Status::Queued);
}

TEST_F(Lending, AfterARestartItIsAsItWas) {
  const JobId other = borrow();
  State next(lending(), "boot");
  for (const JobId id : {first, other}) {
    Job job = *state.find(id);
    std::get<Running>(job.state).parked = {};
    std::get<Running>(job.state).watches = false;
    next.restore(std::move(job));
  }
  next.restored(JobId(3));
  state = std::move(next);
  started(first);
  parked();
  started(other);
  tell(event::NodesChanged{{machine}});
  EXPECT_TRUE(owner().lends);
  EXPECT_EQ(status(other), Status::Running);
  wanted();
  EXPECT_EQ(status(other), Status::Completing);
}

/// It was to be taken away, and the daemon was killed before it said so.
TEST_F(Lending, AfterARestartOfWhichNothingWasTakenItHasItsGpu) {
  idle_for(minutes(60));
  const JobId other = submit_borrower();
  State next(lending(), "boot");
  for (const JobId id : {first, other}) {
    Job job = *state.find(id);
    if (auto* running = std::get_if<Running>(&job.state)) running->parked = {};
    next.restore(std::move(job));
  }
  next.restored(JobId(3));
  state = std::move(next);
  started(first);
  is_back();
  tell(event::NodesChanged{{machine}});
  EXPECT_FALSE(owner().lends);
  EXPECT_EQ(status(first), Status::Running);
  EXPECT_EQ(status(other), Status::Queued);
}

/// Suspended by hand it may keep the memory of the GPU, which its owner needs.
TEST_F(Lending, WhoeverBorrowsMakesRoomAlsoWhereItStands) {
  const JobId other = borrow();
  EXPECT_TRUE(attempt_of(*state.find(other))->borrows);
  tell(event::Suspend{{other}, system_principal()});
  tell(event::ParkingChanged{other, 1, {.refused = "it uses managed memory"}});
  EXPECT_EQ(status(other), Status::Suspended);
  wanted();
  EXPECT_EQ(status(other), Status::Completing);
  end(other, EndReason::Preempted);
  EXPECT_TRUE(resumed);
}

TEST_F(Lending, WhoeverBorrowsStaysPreemptible) {
  const JobId other = borrow();
  event::Update update{{other}, system_principal(), {}};
  update.changes.set(&JobSpec::preemption, Preemption::None);
  tell(update);
  EXPECT_TRUE(refused.starts_with("job 2 has a GPU that another job lends")) << refused;
  EXPECT_EQ(state.find(other)->spec.preemption, Preemption::Requeue);
}

/// Two GPUs; on the second works one that may be stopped. There is too little host memory for what
/// the owner of the first has of it.
TEST_F(Lending, OneThatCannotBeParkedKeepsNobodyFromMakingRoom) {
  Policy policy = lending();
  policy.preempt = true;
  tell(event::Configure{policy});
  add_gpu();
  used(50);
  JobSpec lesser = spec_of(Preemption::Requeue);
  lesser.priority = 1;
  lesser.request.memory = Memory::gib(10);
  const JobId stops = submit(lesser);
  started(stops);
  idle_for(minutes(60));
  JobSpec large = spec_of(Preemption::Requeue);
  large.request.memory = Memory::gib(195);
  const JobId waiting = submit(large);
  EXPECT_FALSE(owner().lends);
  EXPECT_EQ(status(stops), Status::Completing);
  end(stops, EndReason::Preempted);
  EXPECT_EQ(status(waiting), Status::Starting);
}

/// One is free and one is lent: it takes the free one, and both where it needs two.
TEST_F(Lending, WhatIsLentIsTakenLast) {
  const JobId other = borrow();
  end(other);
  add_gpu();
  used(0);
  const JobId one = submit_borrower();
  EXPECT_EQ(attempt_of(*state.find(one))->allocation.gpus, std::vector{1});
  EXPECT_FALSE(attempt_of(*state.find(one))->borrows);
  started(one);
  end(one);
  JobSpec both = spec_of(Preemption::Requeue);
  both.request.gpus = 2;
  const JobId two = submit(both);
  started(two);
  EXPECT_EQ(status(two), Status::Running);
  wanted();
  EXPECT_EQ(status(two), Status::Completing);
}

TEST_F(Lending, OffIsOff) {
  tell(event::Configure{Policy{}});
  submit_borrower();
  idle_for(minutes(600));
  EXPECT_FALSE(lent);
  EXPECT_EQ(state.gpu_idle(*state.find(first), now), minutes(600)) << "it is told all the same";
}

}  // namespace
}  // namespace gflow::engine
