// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/machine_for_tests.h"
#include "core/principal.h"
#include "engine/step.h"

/// Running jobs that move to another GPU of their node.
namespace gflow::engine {
namespace {

using std::chrono::seconds;

/// A node with three GPUs of 80 GiB, the first of which job 1 has: 50 GiB of it are its own.
class Moves : public testing::Test {
 public:
  Moves() { begin(); }
  void begin() {
    machine = machine_with_gpus("n0", 3, "NVIDIA H100 80GB HBM3", Memory::gib(80));
    machine.parks = true;
    machine.memory = Memory::gib(100);
    for (Device& device : machine.devices) device.uuid = "GPU-" + std::to_string(device.index);
    state = State{Policy{}, "boot"};
    state.restored(JobId(1));
    hear_of_node();
    for (const int gpu : {1, 2}) drain(gpu);
    submit(spec_of(Memory::gib(50)));
    tell(event::AttemptStarted{first, 1, 42});
    while (!state.drains().empty()) tell(event::Drain{state.drains().front(), true, root});
  }
  void drain(int gpu) {
    tell(event::Drain{{.node = "n0", .gpu = gpu, .reason = {}, .uuid = {}}, false, root});
  }

  static JobSpec spec_of(Memory memory, int gpus = 1) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.request.gpus = gpus;
    spec.request.gpu_memory = memory;
    return spec;
  }
  JobId submit(const JobSpec& spec) {
    const JobId id = state.next_id();
    tell(event::Submit{{spec}, root});
    return id;
  }
  void hear_of_node() { tell(event::NodesChanged{{machine}}); }
  void tell(const Event& event) {
    now.mono += seconds(1);
    moves = false;
    for (const Effect& effect : step(state, event, now)) {
      if (std::holds_alternative<effect::Move>(effect)) moves = true;
      const auto* answer = std::get_if<effect::Answer>(&effect);
      if (answer != nullptr) refused = answer->jobs ? "" : answer->jobs.error().message;
    }
    EXPECT_EQ(state.check(), "");
  }
  void move(std::optional<int> gpu, JobId id = JobId(1)) { tell(event::Move{id, gpu, true, root}); }
  void ended(const std::string& why = {}) { tell(event::MoveEnded{first, 1, why}); }

  [[nodiscard]] const Running& running() const {
    return std::get<Running>(state.find(first)->state);
  }
  [[nodiscard]] std::vector<int> gpus(JobId id = JobId(1)) const {
    return attempt_of(*state.find(id))->allocation.gpus;
  }
  [[nodiscard]] Status status(JobId id) const { return status_of(*state.find(id)); }
  [[nodiscard]] Memory host_memory_free() const { return state.totals().memory_free; }

  Machine machine;
  State state{Policy{}, "boot"};
  Now now{.wall = WallTime(std::chrono::hours(1)), .mono = MonoTime(std::chrono::hours(1))};
  bool moves = false;
  std::string refused;
  const Principal root = system_principal();
  const JobId first{1};
};

TEST_F(Moves, ItHasBothUntilItIsThere) {
  move(2);
  EXPECT_EQ(refused, "");
  EXPECT_TRUE(moves);
  EXPECT_EQ(running().move,
            (GpuMove{.from = 0, .to = 2, .from_uuid = "GPU-0", .to_uuid = "GPU-2"}));
  EXPECT_EQ(gpus(), (std::vector{0, 2}));
  EXPECT_EQ(host_memory_free(), Memory::gib(49));
  const JobId second = submit(spec_of({}));
  const JobId third = submit(spec_of({}));
  EXPECT_EQ(gpus(second), std::vector{1});
  EXPECT_EQ(status(third), Status::Queued);
  ended();
  EXPECT_EQ(gpus(), std::vector{2});
  EXPECT_FALSE(running().move);
  EXPECT_EQ(gpus(third), std::vector{0});
  EXPECT_EQ(host_memory_free(), Memory::gib(100));
  EXPECT_EQ(status(first), Status::Running);
}

TEST_F(Moves, OneThatCannotStaysWhereItWasWhichWasKept) {
  move(2);
  const JobId second = submit(spec_of({}));
  const JobId third = submit(spec_of({}));
  EXPECT_EQ(status(third), Status::Queued);
  ended("it uses managed memory");
  EXPECT_EQ(gpus(), std::vector{0});
  EXPECT_EQ(running().move_refused, "it uses managed memory");
  EXPECT_EQ(gpus(second), std::vector{1});
  EXPECT_EQ(gpus(third), std::vector{2});
  ended();
  EXPECT_EQ(gpus(), std::vector{0}) << "what is told twice is heard once";
}

TEST_F(Moves, OneIsChosenThatIsFree) {
  const JobId second = submit(spec_of({}));
  ASSERT_EQ(status(second), Status::Starting);
  move(std::nullopt);
  EXPECT_EQ(refused, "");
  EXPECT_EQ(running().move->to, gpus(second) == std::vector{1} ? 2 : 1);
}

TEST_F(Moves, TwoDoNotMoveToOneGpu) {
  const JobId second = submit(spec_of(Memory::gib(10)));
  tell(event::AttemptStarted{second, 1, 43});
  const int free = gpus(second) == std::vector{1} ? 2 : 1;
  move(free);
  move(free, second);
  EXPECT_EQ(refused,
            "job 2 cannot be moved: GPU " + std::to_string(free) +
                " is not free: 'ginfo' shows who has it");
  move(1);
  EXPECT_EQ(refused, "job 1 cannot be moved: it moves to GPU " + std::to_string(free) + " already");
}

TEST_F(Moves, WhatWaitsComesFirst) {
  submit(spec_of({}, 3));
  move(1);
  EXPECT_EQ(refused, "") << "it leaves as much as it takes, and nothing is kept yet";
  EXPECT_EQ(gpus(), (std::vector{0, 1}));
  ended();
  const JobId both = submit(spec_of({}, 2));
  EXPECT_EQ(gpus(both), (std::vector{0, 2}));
  move(std::nullopt);
  EXPECT_EQ(refused, "job 1 cannot be moved: no other GPU like GPU 1 is free on its node");
}

TEST_F(Moves, IsRefusedWhereItCannotBe) {
  const struct {
    const char* why;
    std::function<void(Moves&)> before;
    int to = 1;
  } cases[] = {
      {"it is on GPU 0 already", [](Moves&) {}, 0},
      {"node n0 has no GPU 3", [](Moves&) {}, 3},
      {"GPU 1 is not of the model and the size of GPU 0, and the driver moves programs between "
       "equal ones only",
       [](Moves& its) { its.machine.devices[1].model = "NVIDIA A100-SXM4-80GB"; }},
      {"GPU 1 is not of the model and the size of GPU 0, and the driver moves programs between "
       "equal ones only",
       [](Moves& its) { its.machine.devices[1].memory_total = Memory::gib(96); }},
      {"this machine cannot take GPU memory to host memory: 'gflow doctor' says why",
       [](Moves& its) { its.machine.parks = false; }},
      {"the driver is old", [](Moves& its) { its.machine.cannot_move = "the driver is old"; }},
      {"its GPU is not one of NVIDIA's", [](Moves& its) { its.machine.devices[0].vendor = "amd"; }},
      {"51G of host memory are needed for its GPU memory meanwhile, and 40G are free; with "
       "--gpu-memory a job says that it needs less",
       [](Moves& its) { its.machine.memory = Memory::gib(40); }},
      {"GPU 1 is not free: 'ginfo' shows who has it", [](Moves& its) { its.drain(1); }},
      {"its GPU memory cannot be taken to host memory: it uses managed memory",
       [](Moves& its) {
         its.tell(event::ParkingChanged{its.first, 1, {.refused = "it uses managed memory"}});
       }},
      {"Landlock keeps it from all other GPUs for as long as it runs",
       [](Moves& its) {
         its.tell(event::AttemptStarted{its.first, 1, 42, false, GpuIsolation::Landlock});
       }},
      {"a device filter keeps it from all other GPUs for as long as it runs",
       [](Moves& its) {
         its.tell(event::AttemptStarted{its.first, 1, 42, false, GpuIsolation::Filter});
       }},
      {"it is suspended, or goes on just now: 'gjob resume 1', and try again when it runs",
       [](Moves& its) { its.tell(event::Suspend{{its.first}, its.root}); }},
  };
  for (const auto& one : cases) {
    begin();
    one.before(*this);
    hear_of_node();
    move(one.to);
    EXPECT_EQ(refused, std::string("job 1 cannot be moved: ") + one.why);
    EXPECT_FALSE(moves);
    EXPECT_EQ(gpus(), std::vector{0});
  }
}

TEST_F(Moves, WhoeverMayNotChangeItDoesNotMoveIt) {
  tell(event::Move{first, 1, true, Principal{.name = "bob", .uid = 1001}});
  EXPECT_NE(refused, "");
  EXPECT_FALSE(moves);
  tell(event::Move{first, 1, false, root});
  EXPECT_EQ(refused,
            "job 1 cannot be moved: programs that begin to use a GPU later would use GPU 0 all the "
            "same, as CUDA_VISIBLE_DEVICES is what it was at its start; 'gjob move --running-only "
            "1' moves one of which none does");
}

TEST_F(Moves, MeanwhileItIsEndedButNotSuspended) {
  move(1);
  tell(event::Suspend{{first}, root});
  EXPECT_EQ(refused, "job 1 moves to GPU 1: try again when it is there");
  tell(event::Cancel{{first}, root});
  EXPECT_EQ(refused, "");
  const JobId all = submit(spec_of({}, 3));
  tell(event::AttemptEnded{first, 1, {.reason = EndReason::Cancelled}});
  EXPECT_EQ(status(all), Status::Starting);
  EXPECT_EQ(gpus(all), (std::vector{0, 1, 2}));
}

TEST_F(Moves, AReadingThatIsOlderIsNoUseOfAnothersGpu) {
  move(1);
  ended();
  machine.devices[0].processes = {{.pid = 42, .memory = Memory::gib(20), .job = first}};
  hear_of_node();
  EXPECT_FALSE(running().attempt.on_other_gpus);
  now.mono += seconds(60);
  machine.devices[0].processes.front().memory = Memory::gib(21);
  hear_of_node();
  EXPECT_TRUE(running().attempt.on_other_gpus);
}

TEST_F(Moves, ThatItsNewGpuWasIdleBeforeIsNotItsOwnDoing) {
  Policy lending;
  lending.lend_idle_after = std::chrono::minutes(10);
  tell(event::Configure{lending});
  for (Device& device : machine.devices) device.utilization_percent = device.index == 0 ? 90 : 0;
  hear_of_node();
  tell(event::AttemptStarted{first, 1, 42, true});
  now.mono += std::chrono::hours(9);
  move(1);
  ended();
  EXPECT_EQ(state.gpu_idle(*state.find(first), now), seconds(0));
}

TEST_F(Moves, TheNextGflowdKnowsOfIt) {
  move(1);
  const Job stored = *state.find(first);
  State next{Policy{}, "boot"};
  next.restore(Job(stored));
  next.restored(JobId(2));
  state = std::move(next);
  hear_of_node();
  const JobId second = submit(spec_of({}));
  EXPECT_EQ(gpus(second), std::vector{2});
  tell(event::AttemptStarted{first, 1, 42});
  tell(event::ParkingChanged{first, 1, {.how = Parking::Parked}});
  EXPECT_EQ(running().parked, ParkedMemory{}) << "that is a part of the move";
  ended();
  EXPECT_EQ(gpus(), std::vector{1});
}

}  // namespace
}  // namespace gflow::engine
