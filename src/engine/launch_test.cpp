// SPDX-License-Identifier: Apache-2.0
// The port: what the engine grants reaches the executor of the node it was granted on, and what
// that says comes back. Two nodes, each with an executor that runs jobs in memory.
#include "engine/launch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/executor_for_tests.h"
#include "core/machine_for_tests.h"
#include "engine/step.h"

namespace gflow::engine {
namespace {

using Attempts = std::map<std::pair<JobId, int>, LaunchOrder>;

/// Runs what it is ordered to until it is told that it ended, or to stop.
class MemoryExecutor : public IdleExecutor {
 public:
  void launch(const LaunchOrder& order) override {
    running[{order.job, order.attempt}] = order;
    reports_.emplace_back(executor::Started{order.job, order.attempt, 100});
  }
  void stop(JobId job, int attempt, int /*signal*/, EndReason reason) override {
    end(job, attempt, {.reason = reason});
  }
  void change_limit(JobId job,
                    int attempt,
                    std::optional<std::chrono::seconds> limit,
                    std::chrono::milliseconds /*ran*/) override {
    if (const auto at = running.find({job, attempt}); at != running.end()) {
      at->second.time_limit = limit;
    }
  }
  executor::Adoption adopt(JobId job,
                           int attempt,
                           const std::string& /*boot_id*/,
                           executor::Progress /*progress*/) override {
    if (running.contains({job, attempt})) return executor::StillRuns{100};
    return executor::NeverRan{};
  }
  void forget(JobId job, int attempt) override { running.erase({job, attempt}); }
  std::vector<executor::Report> poll() override { return std::exchange(reports_, {}); }

  void end(JobId job, int attempt, Outcome outcome) {
    if (running.erase({job, attempt}) == 0) return;
    reports_.emplace_back(executor::Gone{job, attempt, std::move(outcome)});
  }

  Attempts running;

 private:
  std::vector<executor::Report> reports_;
};

Machine machine_of(const std::string& name, int gpus) {
  Machine machine = machine_with_gpus(name, gpus, "NVIDIA GeForce RTX 3090", Memory::gib(24));
  machine.cpus = 16;
  machine.topology.cpus = {{0, "0-15"}};
  for (Device& device : machine.devices) {
    device.uuid = "GPU-" + name + "-" + std::to_string(device.index);
  }
  return machine;
}

/// The engine and two nodes.
class TwoNodes : public testing::Test {
 protected:
  TwoNodes() {
    state.restored(JobId(1));
    tell(event::NodesChanged{{machine_of("n1", 2), machine_of("n2", 2)}});
  }
  void tell(const Event& event) {
    for (const Effect& effect : step(state, event, now)) {
      if (const auto* launch = std::get_if<effect::Launch>(&effect)) {
        ASSERT_TRUE(nodes.contains(launch->order->node));
        nodes[launch->order->node].launch(*launch->order);
      }
      if (const auto* stop = std::get_if<effect::StopAttempt>(&effect)) {
        const Attempt& attempt = *attempt_of(*state.find(stop->job));
        nodes[attempt.allocation.node].stop(stop->job, stop->attempt, 0, EndReason::Cancelled);
      }
    }
    for (auto& [name, node] : nodes) {
      for (const executor::Report& report : node.poll()) hear(report);
    }
    ASSERT_EQ(state.check(), "");
  }
  void hear(const executor::Report& report) {
    if (const auto* started = std::get_if<executor::Started>(&report)) {
      return tell(event::AttemptStarted{started->job, started->attempt, started->pid});
    }
    if (const auto* gone = std::get_if<executor::Gone>(&report))
      tell(event::AttemptEnded{gone->job, gone->attempt, gone->outcome});
  }
  JobId submit(Request request) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.request = std::move(request);
    spec.time_limit = std::chrono::hours(1);
    const JobId id = state.next_id();
    tell(event::Submit{{spec}, system_principal()});
    return id;
  }
  [[nodiscard]] Status status(JobId id) const { return status_of(*state.find(id)); }

  State state{Policy{}, "boot"};
  Now now{WallTime(std::chrono::hours(1)), MonoTime(std::chrono::hours(1))};
  std::map<std::string, MemoryExecutor> nodes{{"n1", {}}, {"n2", {}}};
};

TEST_F(TwoNodes, EachRunsWhatWasGrantedThere) {
  const JobId first = submit({.gpus = 2});
  const JobId second = submit({.gpus = 2});
  EXPECT_EQ(status(first), Status::Running);
  EXPECT_EQ(status(second), Status::Running);
  ASSERT_EQ(nodes["n1"].running.size(), 1U);
  ASSERT_EQ(nodes["n2"].running.size(), 1U);
  for (const auto& [name, node] : nodes) {
    const LaunchOrder& order = node.running.begin()->second;
    EXPECT_EQ(order.node, name);
    EXPECT_EQ(order.devices.at(1),
              (DeviceGrant{1, "GPU-" + name + "-1", "nvidia", Share::whole(), {}}));
    EXPECT_NE(std::ranges::find(order.environment, "GFLOW_NODE=" + name), order.environment.end());
  }
  const auto [job, attempt] = nodes["n2"].running.begin()->first;
  nodes["n2"].end(job, attempt, {});
  tell(event::Tick{});
  EXPECT_EQ(status(job), Status::Finished);
  tell(event::Cancel{{job == first ? second : first}, system_principal()});
  EXPECT_TRUE(nodes["n1"].running.empty());
  EXPECT_EQ(status(job == first ? second : first), Status::Cancelled);
}

TEST_F(TwoNodes, AnOrderSaysAllThatWasGranted) {
  Request request{.gpus = 1, .share = Share::percent(25), .mode = GpuMode::Fraction};
  request.cpus = 3;
  request.memory = Memory::gib(8);
  const JobId id = submit(request);
  const std::string& node = attempt_of(*state.find(id))->allocation.node;
  const LaunchOrder& order = nodes[node].running.at({id, 1});
  ASSERT_EQ(order.devices.size(), 1U);
  EXPECT_EQ(order.devices[0].share, Share::percent(25));
  EXPECT_EQ(order.devices[0].memory, Memory::gib(6)) << "its share of the device's memory";
  EXPECT_EQ(order.mode, GpuMode::Fraction);
  EXPECT_EQ(order.cpus, (std::vector{0, 1, 2}));
  EXPECT_EQ(order.limits, (LaunchLimits{3, Memory::gib(8)}));
  EXPECT_EQ(order.time_limit, std::chrono::hours(1));
  EXPECT_EQ(order.user, (User{1000, "alice"}));
}

// CPUs are each node's own: the same numbers are given out on both.
TEST_F(TwoNodes, CpusAreCountedByNode) {
  const JobId first = submit({.gpus = 2, .cpus = 4});
  const JobId second = submit({.gpus = 2, .cpus = 4});
  for (const JobId id : {first, second}) {
    EXPECT_EQ(attempt_of(*state.find(id))->allocation.cpus, (std::vector{0, 1, 2, 3}));
  }
  const JobId both = submit({.gpus = 2, .cpus = 4, .nodes = 2});
  tell(event::Cancel{{first, second}, system_principal()});
  for (const Allocation& part : allocations_of(*attempt_of(*state.find(both)))) {
    EXPECT_EQ(part.cpus, (std::vector{0, 1, 2, 3})) << part.node;
  }
}

TEST_F(TwoNodes, WhatRunsOnANodeThatIsAwayIsNotJudged) {
  const JobId first = submit({.gpus = 2});
  const std::string node = attempt_of(*state.find(first))->allocation.node;
  tell(event::NodeUnreachable{node, "no answer"});
  EXPECT_EQ(status(first), Status::Running);
  const JobId second = submit({.gpus = 2});
  EXPECT_NE(attempt_of(*state.find(second))->allocation.node, node);
  // It ends while its node is away, and that is told when the node answers again.
  nodes[node].end(first, 1, {.exit_code = 3});
  tell(event::NodesChanged{{machine_of(node, 2)}});
  EXPECT_EQ(status(first), Status::Failed);
  const JobId third = submit({.gpus = 2});
  EXPECT_EQ(attempt_of(*state.find(third))->allocation.node, node);
}

}  // namespace
}  // namespace gflow::engine
