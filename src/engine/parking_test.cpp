// SPDX-License-Identifier: Apache-2.0
#include "engine/parking.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/machine_for_tests.h"
#include "core/principal.h"
#include "engine/step.h"

/// Jobs that are suspended and whose GPU memory is taken to host memory.
namespace gflow::engine {
namespace {

using std::chrono::seconds;

/// A node with one GPU of 80 GiB, which job 1 has: 50 GiB of it are its own.
class Parks : public testing::Test {
 protected:
  Parks() : machine(machine_with_gpus("n0", 1, "NVIDIA H100 80GB HBM3", Memory::gib(80))) {
    machine.parks = true;
    machine.memory = Memory::gib(100);
    machine.devices.front().uuid = "GPU-1";
    state.restored(JobId(1));
    hear_of_node();
    submit(spec_of(10, Memory::gib(50), Preemption::Suspend));
    tell(event::AttemptStarted{first, 1, 42});
  }

  static JobSpec spec_of(int priority, Memory memory, Preemption preemption = Preemption::None) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.priority = priority;
    spec.preemption = preemption;
    spec.request.gpus = 1;
    spec.request.gpu_memory = memory;
    return spec;
  }
  JobId submit(const JobSpec& spec) {
    const JobId id = state.next_id();
    tell(event::Submit{{spec}, system_principal()});
    return id;
  }
  /// One that wants the whole GPU.
  JobId submit_urgent() { return submit(spec_of(200, {})); }
  void hear_of_node() { tell(event::NodesChanged{{machine}}); }
  void tell(const Event& event) {
    now.mono += seconds(1);
    resumed = suspended = false;
    for (const Effect& effect : step(state, event, now)) {
      if (std::holds_alternative<effect::Suspend>(effect)) suspended = true;
      if (std::holds_alternative<effect::Resume>(effect)) resumed = true;
    }
    EXPECT_EQ(state.check(), "");
  }
  void parked() {
    tell(event::ParkingChanged{first, 1, {.how = Parking::Parked, .memory = Memory::gib(20)}});
  }
  void refused() { tell(event::ParkingChanged{first, 1, {.refused = "it uses managed memory"}}); }
  void is_back() { tell(event::ParkingChanged{first, 1, {}}); }
  void end(JobId id) { tell(event::AttemptEnded{id, 1, Outcome{}}); }

  [[nodiscard]] Status status(JobId id) const { return status_of(*state.find(id)); }
  [[nodiscard]] const ParkedMemory& memory() const {
    return std::get<Running>(state.find(first)->state).parked;
  }
  [[nodiscard]] Memory host_memory_free() const { return state.totals().memory_free; }

  Machine machine;
  State state{Policy{}, "boot"};
  Now now{.wall = WallTime(std::chrono::hours(1)), .mono = MonoTime(std::chrono::hours(1))};
  bool suspended = false;
  bool resumed = false;
  const JobId first{1};
};

TEST_F(Parks, OneThatIsUrgentStartsWhenItsMemoryIsAwayAndItComesBackAfterIt) {
  const JobId urgent = submit_urgent();
  EXPECT_TRUE(suspended);
  EXPECT_EQ(memory(), (ParkedMemory{.how = Parking::Begun, .memory = Memory::gib(51)}));
  EXPECT_EQ(status(urgent), Status::Queued);
  EXPECT_EQ(host_memory_free(), Memory::gib(49));
  EXPECT_EQ(std::get<Queued>(state.find(urgent)->state).victims, std::vector{first});
  parked();
  EXPECT_EQ(status(urgent), Status::Starting);
  EXPECT_EQ(memory().memory, Memory::gib(20));
  EXPECT_EQ(host_memory_free(), Memory::gib(49));
  tell(event::AttemptStarted{urgent, 1, 43});
  EXPECT_FALSE(resumed);
  end(urgent);
  EXPECT_TRUE(resumed);
  EXPECT_EQ(status(first), Status::Running);
  EXPECT_EQ(memory().how, Parking::Ending);
  EXPECT_EQ(host_memory_free(), Memory::gib(49)) << "it is not given back yet";
  is_back();
  EXPECT_EQ(memory(), ParkedMemory{});
  EXPECT_EQ(host_memory_free(), Memory::gib(100));
}

/// Nobody else takes the place meanwhile, and nobody else is suspended for it.
TEST_F(Parks, ThePlaceIsKeptUntilItIsAway) {
  const JobId urgent = submit_urgent();
  const JobId small = submit(spec_of(10, Memory::gib(10)));
  EXPECT_EQ(status(small), Status::Queued) << "there is room for it beside the suspended one";
  EXPECT_FALSE(suspended);
  parked();
  EXPECT_EQ(status(urgent), Status::Starting);
  EXPECT_EQ(status(small), Status::Queued);
}

TEST_F(Parks, RoomThatIsThereAnywayIsNotWaitedFor) {
  const JobId urgent = submit(spec_of(200, Memory::gib(30)));
  EXPECT_EQ(memory().how, Parking::Begun);
  EXPECT_EQ(status(urgent), Status::Starting);
}

TEST_F(Parks, OneThatCannotBeGoesOnAndIsNotAskedAgain) {
  const JobId urgent = submit_urgent();
  refused();
  EXPECT_TRUE(resumed);
  EXPECT_EQ(status(first), Status::Running);
  EXPECT_EQ(status(urgent), Status::Queued);
  EXPECT_EQ(host_memory_free(), Memory::gib(100));
  now.mono += std::chrono::minutes(20);
  tell(event::Tick{});
  EXPECT_FALSE(suspended);
  tell(event::Suspend{{first}, system_principal()});
  EXPECT_TRUE(suspended);
  EXPECT_EQ(memory().how, Parking::None);
  EXPECT_EQ(memory().refused, "it uses managed memory");
  end(first);
  EXPECT_EQ(status(urgent), Status::Starting);
}

TEST_F(Parks, WhereItCannotBeItKeepsItsMemory) {
  const struct {
    const char* what;
    void (*change)(Machine&);
  } kRows[] = {
      {"the driver cannot", [](Machine& its) { its.parks = false; }},
      {"the host has no room for it", [](Machine& its) { its.memory = Memory::gib(50); }},
      {"it is no GPU of NVIDIA's", [](Machine& its) { its.devices.front().vendor = "amd"; }},
      {"its GPU cannot be told from others", [](Machine& its) { its.devices.front().uuid = ""; }},
  };
  const Machine before = machine;
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.what);
    machine = before;
    row.change(machine);
    hear_of_node();
    tell(event::Suspend{{first}, system_principal()});
    EXPECT_TRUE(suspended);
    EXPECT_EQ(memory(), ParkedMemory{});
    tell(event::Resume{{first}, system_principal()});
    EXPECT_TRUE(resumed);
  }
  const JobId urgent = submit_urgent();
  EXPECT_EQ(status(urgent), Status::Queued);
  EXPECT_FALSE(suspended);
}

/// It is found out after the start of the daemon.
TEST_F(Parks, WhoWaitsHasRoomMadeAsSoonAsItIsKnownThatItCanBe) {
  machine.parks = false;
  hear_of_node();
  (void)submit_urgent();
  EXPECT_FALSE(suspended);
  machine.parks = true;
  hear_of_node();
  EXPECT_TRUE(suspended);
}

/// Its compute may be free and its memory another's, who is suspended beside it.
TEST_F(Parks, ItGoesOnWhenItsMemoryIsFreeAndItIsSaidWhoHasIt) {
  tell(event::Suspend{{first}, system_principal()});
  const JobId other = submit(spec_of(10, Memory::gib(40), Preemption::None));
  EXPECT_EQ(status(other), Status::Queued) << "30 GiB are free until the other's are away";
  parked();
  ASSERT_EQ(status(other), Status::Starting);
  tell(event::AttemptStarted{other, 1, 43});
  machine.parks = false;
  hear_of_node();
  tell(event::Suspend{{other}, system_principal()});
  tell(event::Resume{{first}, system_principal()});
  EXPECT_FALSE(resumed);
  const auto why = state.blockers(first, now);
  ASSERT_EQ(why.size(), 1U);
  const auto* memory_of_gpu = std::get_if<blocker::GpuMemory>(&why.front());
  ASSERT_NE(memory_of_gpu, nullptr);
  EXPECT_EQ(memory_of_gpu->need, Memory::gib(50));
  EXPECT_EQ(memory_of_gpu->missing, Memory::gib(10));
  ASSERT_EQ(memory_of_gpu->holders.size(), 1U);
  EXPECT_EQ(memory_of_gpu->holders.front().job, other);
  end(other);
  EXPECT_TRUE(resumed);
}

/// Who resumes it meanwhile has to wait, as it cannot be left half done.
TEST_F(Parks, ResumedWhileItIsOnItsWayItGoesOnAfterThat) {
  tell(event::Suspend{{first}, system_principal()});
  tell(event::Resume{{first}, system_principal()});
  EXPECT_FALSE(resumed);
  EXPECT_EQ(status(first), Status::Suspended);
  parked();
  EXPECT_TRUE(resumed);
  EXPECT_EQ(memory().how, Parking::Ending);
}

TEST_F(Parks, SuspendedWhileItComesBackItIsParkedOnceMore) {
  tell(event::Suspend{{first}, system_principal()});
  parked();
  tell(event::Resume{{first}, system_principal()});
  ASSERT_EQ(memory().how, Parking::Ending);
  tell(event::Suspend{{first}, system_principal()});
  EXPECT_EQ(memory().how, Parking::Begun);
  is_back();  // told late
  EXPECT_EQ(memory().how, Parking::Begun);
  parked();
  EXPECT_EQ(memory().how, Parking::Parked);
}

/// A daemon that comes back is told before there is a node, and so before anything is decided.
TEST_F(Parks, WhatWasParkedBeforeARestartIsKnownFromTheStart) {
  tell(event::Suspend{{first}, system_principal()});
  parked();
  Job stored = *state.find(first);
  std::get<Running>(stored.state).parked = {};
  state = State(Policy{}, "boot");
  state.restore(std::move(stored));
  state.restored(JobId(2));
  tell(event::AttemptStarted{first, 1, 42});
  parked();
  hear_of_node();
  EXPECT_EQ(memory().how, Parking::Parked);
  EXPECT_EQ(host_memory_free(), Memory::gib(49));
  const JobId next = submit_urgent();
  EXPECT_EQ(status(next), Status::Starting);
}

/// One that was told to go on before that, and may not have its memory back yet.
TEST_F(Parks, WhatRunsAndIsParkedIsOnItsWayBack) {
  parked();
  EXPECT_EQ(memory().how, Parking::Ending);
  EXPECT_EQ(host_memory_free(), Memory::gib(49));
  is_back();
  EXPECT_EQ(memory().how, Parking::None);
}

TEST_F(Parks, WithSeveralGpusItKeepsTheirMemory) {
  end(first);
  machine = machine_with_gpus("n0", 2, "NVIDIA H100 80GB HBM3", Memory::gib(80));
  machine.parks = true;
  for (Device& device : machine.devices) device.uuid = "GPU-" + std::to_string(device.index);
  hear_of_node();
  JobSpec both = spec_of(10, Memory::gib(50), Preemption::Suspend);
  both.request.gpus = 2;
  const JobId wide = submit(both);
  tell(event::AttemptStarted{wide, 1, 42});
  tell(event::Suspend{{wide}, system_principal()});
  EXPECT_EQ(std::get<Running>(state.find(wide)->state).parked, ParkedMemory{});
}

TEST_F(Parks, OnAMigDeviceItKeepsItsMemory) {
  end(first);
  machine = machine_with_gpus("n0", 1, "NVIDIA H100 80GB HBM3 MIG 3g.40gb", Memory::mib(40448));
  machine.parks = true;
  machine.devices[0].uuid = "MIG-1";
  machine.devices[0].mig = MigDevice{"GPU-0", "3g.40gb", 1, 0};
  hear_of_node();
  JobSpec one = spec_of(10, Memory::gib(20), Preemption::Suspend);
  one.request.models = {"3g.40gb"};
  const JobId sliced = submit(one);
  tell(event::AttemptStarted{sliced, 1, 42});
  tell(event::Suspend{{sliced}, system_principal()});
  EXPECT_EQ(std::get<Running>(state.find(sliced)->state).parked, ParkedMemory{});
}

}  // namespace
}  // namespace gflow::engine
