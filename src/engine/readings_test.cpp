// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "engine/step.h"

namespace gflow::engine {
namespace {

Machine with_gpu() {
  Machine machine;
  machine.name = "n1";
  machine.cpus = 4;
  Device device;
  device.temperature_celsius = 50;
  device.utilization_percent = 10;
  device.power_milliwatts = 100'000;
  device.memory_total = Memory::gib(24);
  device.memory_used = Memory{};
  machine.devices = {device};
  return machine;
}

class Readings : public testing::Test {
 protected:
  /// The revision once this is told.
  std::uint64_t after(const Machine& machine) {
    (void)step(state_, event::NodesChanged{{machine}}, Now{});
    EXPECT_EQ(state_.check(), "");
    EXPECT_EQ(state_.nodes().at("n1").machine, machine) << "it is shown as it is";
    return state_.revision();
  }

  State state_{Policy{}, "boot"};
};

TEST_F(Readings, WhatIsOnlyShownIsNoNews) {
  Machine machine = with_gpu();
  const std::uint64_t before = after(machine);
  machine.devices[0].temperature_celsius = 51;
  EXPECT_EQ(after(machine), before);
  machine.devices[0].utilization_percent = 100;
  machine.devices[0].power_milliwatts = 300'000;
  EXPECT_EQ(after(machine), before);
}

TEST_F(Readings, WhatDecidesIsNews) {
  Machine machine = with_gpu();
  std::uint64_t before = after(machine);
  const auto is_news = [&] { return std::exchange(before, after(machine)) != before; };
  machine.devices[0].memory_used = Memory::gib(1);
  EXPECT_TRUE(is_news());
  machine.devices[0].processes.emplace_back().pid = 7;
  EXPECT_TRUE(is_news());
  machine.devices[0].trouble = "it is hot";
  EXPECT_TRUE(is_news());
  machine.devices.push_back(machine.devices[0]);
  machine.devices[1].index = 1;
  EXPECT_TRUE(is_news());
  EXPECT_FALSE(is_news());
}

/// A machine whose two devices have these UUIDs.
Machine with_two(const char* first, const char* second) {
  Machine machine = with_gpu();
  machine.devices.push_back(machine.devices[0]);
  machine.devices[1].index = 1;
  machine.devices[0].uuid = first;
  machine.devices[1].uuid = second;
  return machine;
}

/// How often it was decided what starts.
TEST_F(Readings, WhatDecidesNothingMakesNoPass) {
  Machine machine = with_gpu();
  (void)after(machine);
  const JobSpec spec{.request = {.gpus = 1,
                                 .share = Share::percent(50),
                                 .gpu_memory = Memory::gib(8),
                                 .mode = GpuMode::Fraction},
                     .time_limit = std::chrono::seconds(100)};
  for (int job = 0; job < 3; ++job)
    (void)step(state_, event::Submit{{spec}, system_principal()}, Now{});
  ASSERT_EQ(state_.list({.statuses = kActive}).size(), 2U) << "and one waits";
  const std::uint64_t passes = state_.passes();
  machine.devices[0].temperature_celsius = 51;
  (void)after(machine);
  machine.devices[0].memory_used = Memory::gib(7);  // within what was declared
  machine.devices[0].uses = {{1, Memory::gib(7)}};
  (void)after(machine);
  EXPECT_EQ(state_.passes(), passes);
  machine.devices[0].uses = {{1, Memory::gib(9)}};
  machine.devices[0].memory_used = Memory::gib(9);
  (void)after(machine);
  EXPECT_EQ(state_.passes(), passes + 1) << "there is less to give out";
  machine.devices[0].processes.emplace_back().pid = 7;
  (void)after(machine);
  EXPECT_EQ(state_.passes(), passes + 2);
}

TEST_F(Readings, AGateThatOpensMeanwhileIsLookedAt) {
  Machine machine = with_gpu();
  (void)after(machine);
  JobSpec spec;
  spec.begin = WallTime(std::chrono::seconds(10));
  (void)step(state_, event::Submit{{spec}, system_principal()}, Now{});
  EXPECT_TRUE(state_.list({.statuses = kActive}).empty());
  machine.devices[0].temperature_celsius = 51;
  (void)step(state_, event::NodesChanged{{machine}}, Now{*spec.begin, MonoTime{}});
  EXPECT_EQ(state_.list({.statuses = kActive}).size(), 1U);
}

TEST_F(Readings, AnAttemptIsWarnedOfOnce) {
  Machine machine = with_two("a", "b");
  (void)after(machine);
  const JobSpec spec{.request = {.gpus = 1,
                                 .share = Share::percent(50),
                                 .gpu_memory = Memory::gib(8),
                                 .mode = GpuMode::Fraction}};
  (void)step(state_, event::Submit{{spec}, system_principal()}, Now{});
  const auto told = [&](State& state) {
    std::vector<std::pair<int, bool>> all;  // the GPU, and whether the job holds it
    bool saved = false;
    for (const Effect& effect : step(state, event::NodesChanged{{machine}}, Now{})) {
      saved = saved || std::holds_alternative<effect::Save>(effect);
      if (const auto* one = std::get_if<effect::Overuse>(&effect)) {
        all.emplace_back(one->gpu, one->reserved.has_value());
      }
    }
    EXPECT_EQ(saved, !all.empty());
    EXPECT_EQ(state.check(), "");
    return all;
  };
  using Told = std::vector<std::pair<int, bool>>;
  machine.devices[0].uses = {{1, Memory::gib(8)}};
  EXPECT_EQ(told(state_), Told());
  machine.devices[0].uses = {{1, Memory::gib(9)}};
  EXPECT_EQ(told(state_), (Told{{0, true}}));
  machine.devices[0].uses = {{1, Memory::gib(10)}};
  EXPECT_EQ(told(state_), Told());
  machine.devices[1].processes.push_back({.pid = 5, .memory = Memory::gib(1), .job = JobId(1)});
  EXPECT_EQ(told(state_), (Told{{1, false}}));
  machine.devices[1].processes[0].memory = Memory::gib(2);
  EXPECT_EQ(told(state_), Told());
  // What is told comes with the job.
  State next{Policy{}, "boot"};
  next.restore(Job(*state_.find(JobId(1))));
  next.restored(JobId(2));
  EXPECT_EQ(told(next), Told());
  // It ends: whatever the last reading said, nothing of it is there.
  EXPECT_EQ(state_.nodes().at("n1").machine.devices[1].processes.size(), 1U);
  (void)step(state_, event::AttemptEnded{JobId(1), 1, Outcome{}}, Now{});
  EXPECT_TRUE(state_.nodes().at("n1").machine.devices[1].processes.empty());
  EXPECT_EQ(state_.check(), "");
}

TEST_F(Readings, OveruseStopsAnAttemptWhereThatIsThePolicy) {
  struct Row {
    const char* name;
    Memory used;       ///< of its own device, where 8 GiB are reserved for it
    bool is_on_other;  ///< it uses another one, too
    bool see_all;
    Policy policy;
    std::string said;  ///< of its end; "": it is not stopped
  };
  const Policy tells;
  const Policy stops{.stop_overuse = true};
  const Policy stops_soon{.stop_overuse = true, .overuse_margin = Memory::mib(1)};
  const std::string more = "it used more GPU memory than is reserved for it";
  const std::string other = "it used a GPU that it does not hold";
  const Row rows[] = {
      {"told only", Memory::gib(20), true, false, tells, ""},
      {"its own", Memory::gib(8), false, false, stops, ""},
      {"within the margin", Memory::gib(10), false, false, stops, ""},
      {"beyond the margin", Memory::gib(11), false, false, stops, more},
      {"beyond another margin", Memory::gib(9), false, false, stops_soon, more},
      {"another's", Memory{}, true, false, stops, other},
      {"all of them were asked for", Memory{}, true, true, stops, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Policy policy = row.policy;
    policy.allow_see_all = true;
    State state{policy, "boot"};
    Machine machine = with_two("a", "b");
    (void)step(state, event::NodesChanged{{machine}}, Now{});
    JobSpec spec{.request = {.gpus = 1,
                             .share = Share::percent(50),
                             .gpu_memory = Memory::gib(8),
                             .mode = GpuMode::Fraction}};
    if (row.see_all) spec.request = {.see_all = true};
    (void)step(state, event::Submit{{spec}, system_principal()}, Now{});
    (void)step(state, event::AttemptStarted{JobId(1), 1, 7}, Now{});
    ASSERT_EQ(status_of(*state.find(JobId(1))), Status::Running);
    if (row.used > Memory{}) machine.devices[0].uses = {{1, row.used}};
    if (row.is_on_other) machine.devices[1].processes.push_back({.pid = 5, .job = JobId(1)});
    int stopped = 0;
    int said = 0;
    for (int reading = 0; reading < 2; ++reading) {
      machine.devices[0].temperature_celsius = 40 + reading;
      for (const Effect& effect : step(state, event::NodesChanged{{machine}}, Now{})) {
        if (std::holds_alternative<effect::StopAttempt>(effect)) ++stopped;
        const auto* overuse = std::get_if<effect::Overuse>(&effect);
        if (overuse != nullptr && overuse->is_stopped) ++said;
      }
      EXPECT_EQ(state.check(), "");
    }
    EXPECT_EQ(stopped, row.said.empty() ? 0 : 1);
    EXPECT_EQ(said, stopped);
    if (row.said.empty()) continue;
    const Outcome ended{.reason = EndReason::Cancelled};
    (void)step(state, event::AttemptEnded{JobId(1), 1, ended}, Now{});
    const auto* end = std::get_if<Ended>(&state.find(JobId(1))->state);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->status, Status::Cancelled);
    EXPECT_EQ(end->outcome.message, row.said);
  }
}

TEST_F(Readings, ADrainFollowsItsDevice) {
  (void)after(with_two("a", "b"));
  const Principal root{.name = "root", .uid = 0, .role = Role::Administrator, .projects = {}};
  const auto said = [&](const Drain& what, bool resume) -> std::string {
    for (const Effect& effect : step(state_, event::Drain{what, resume, root}, Now{})) {
      const auto* answer = std::get_if<effect::Answer>(&effect);
      if (answer != nullptr) return answer->jobs ? "done" : answer->jobs.error().message;
    }
    return "nothing";
  };
  const auto change = [&](int gpu, bool resume) {
    return said({.node = "n1", .gpu = gpu}, resume) == "done";
  };
  const auto change_uuid = [&](const std::string& uuid, bool resume) {
    return said({.node = "", .uuid = uuid}, resume) == "done";
  };
  const auto bars = [&] {
    std::vector<std::pair<std::string, bool>> all;
    for (const Device& device : state_.nodes().at("n1").machine.devices) {
      all.emplace_back(device.uuid, drain_of_device(state_.drains(), "n1", device) != nullptr);
    }
    return all;
  };
  using Bars = std::vector<std::pair<std::string, bool>>;
  ASSERT_TRUE(change(1, false));
  EXPECT_EQ(bars(), (Bars{{"a", false}, {"b", true}}));
  (void)after(with_two("b", "a"));
  EXPECT_EQ(bars(), (Bars{{"b", true}, {"a", false}}));
  EXPECT_EQ(state_.drains().front().gpu, 0);
  EXPECT_FALSE(change(1, true)) << "a is not drained";
  // It is taken out, and another has its place: that one is free, and can be drained, too.
  (void)after(with_two("c", "a"));
  EXPECT_EQ(bars(), (Bars{{"c", false}, {"a", false}}));
  ASSERT_TRUE(change(0, false));
  EXPECT_EQ(state_.drains().size(), 2U);
  ASSERT_TRUE(change(0, true));
  EXPECT_EQ(bars(), (Bars{{"c", false}, {"a", false}}));
  // An index is that of a device that is there: b is not, and is named by its UUID.
  EXPECT_EQ(said({.node = "n1", .gpu = 0}, true),
            "GPU 0 is not drained; the drained GPU that had this index is not present: name it by "
            "its UUID, b");
  EXPECT_EQ(state_.drains().size(), 1U);
  ASSERT_TRUE(change_uuid("b", true));
  EXPECT_TRUE(state_.drains().empty());
  ASSERT_FALSE(change_uuid("b", false)) << "who is not there was never drained";
  ASSERT_TRUE(change_uuid("a", false));
  EXPECT_EQ(bars(), (Bars{{"c", false}, {"a", true}}));
  ASSERT_TRUE(change_uuid("a", true));
  (void)after(with_two("b", "c"));
  ASSERT_TRUE(change(0, false));
  (void)after(with_two("a", "b"));
  EXPECT_EQ(bars(), (Bars{{"a", false}, {"b", true}}));
  ASSERT_TRUE(change(1, true));
  EXPECT_EQ(bars(), (Bars{{"a", false}, {"b", false}}));
  EXPECT_TRUE(state_.drains().empty());
  // An index and a UUID, as GET /api/v1/drain gives them, are of one GPU or refused.
  EXPECT_EQ(said({.node = "n1", .gpu = 0, .uuid = "b"}, false),
            "GPU 0 is not b, which is GPU 1: name it by 'gpu' or by 'uuid'");
  EXPECT_TRUE(state_.drains().empty());
  ASSERT_EQ(said({.node = "n1", .gpu = 1, .uuid = "b"}, false), "done");
  ASSERT_EQ(said({.node = "n1", .gpu = 1, .uuid = "b"}, true), "done");
  // Drained again while it is away, it is still that one.
  ASSERT_TRUE(change(1, false));
  (void)after(with_gpu());
  for (const bool resume : {false, true}) {
    EXPECT_EQ(said({.node = "n1", .gpu = 1}, resume),
              "there is no GPU 1; the drained GPU that had this index is not present: name it by "
              "its UUID, b");
  }
  EXPECT_EQ(said({.node = "n1", .gpu = 1, .uuid = "x"}, false),
            "there is no GPU with the UUID x; 'ginfo -l' shows those that are present, 'gctl show' "
            "those that are drained");
  EXPECT_EQ(said({.node = "n1", .gpu = 0, .uuid = "b"}, true),
            "GPU 0 is not b, which is GPU 1: name it by 'gpu' or by 'uuid'");
  ASSERT_EQ(said({.node = "n1", .gpu = 1, .reason = "again", .uuid = "b"}, false), "done");
  ASSERT_EQ(state_.drains().size(), 1U);
  EXPECT_EQ(state_.drains().front().reason, "again");
  EXPECT_EQ(state_.drains().front().gpu, 1) << "the index it had";
  (void)after(with_two("a", "d"));
  EXPECT_EQ(bars(), (Bars{{"a", false}, {"d", false}}));
  (void)after(with_two("a", "b"));
  EXPECT_EQ(bars(), (Bars{{"a", false}, {"b", true}}));
}

}  // namespace
}  // namespace gflow::engine
