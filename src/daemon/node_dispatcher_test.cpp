// SPDX-License-Identifier: Apache-2.0
#include "daemon/node_dispatcher.h"

#include <gtest/gtest.h>

#include "core/executor_for_tests.h"

namespace gflow::daemon {
namespace {

/// Notes what it is told.
class Noted : public IdleExecutor {
 public:
  void launch(const LaunchOrder& order) override {
    said += "launch " + std::to_string(order.job.value) + " " + order.payload.argv.at(0) + "; ";
  }
  void stop(JobId job, int /*attempt*/, int signal, EndReason /*reason*/) override {
    said += "stop " + std::to_string(job.value) + " " + std::to_string(signal) + "; ";
  }
  void suspend(JobId job, int /*attempt*/, Memory park) override {
    said += "suspend " + std::to_string(job.value) + (park > Memory{} ? " and park; " : "; ");
  }
  void signal(JobId job, int /*attempt*/, int number) override {
    said += "signal " + std::to_string(job.value) + " " + std::to_string(number) + "; ";
  }
  void resume(JobId job, int /*attempt*/) override {
    said += "resume " + std::to_string(job.value) + "; ";
  }
  void change_limit(JobId job,
                    int /*a*/,
                    std::optional<std::chrono::seconds> /*l*/,
                    std::chrono::milliseconds /*r*/) override {
    said += "limit " + std::to_string(job.value) + "; ";
  }
  executor::Adoption adopt(JobId /*job*/,
                           int /*attempt*/,
                           const std::string& /*boot*/,
                           executor::Progress /*progress*/) override {
    return executor::StillRuns{77};
  }
  void sweep(const std::vector<std::pair<JobId, int>>& known) override {
    for (const auto& [job, attempt] : known) said += "keep " + std::to_string(job.value) + "; ";
  }
  [[nodiscard]] std::vector<executor::Doubt> doubts() const override { return doubtful; }
  [[nodiscard]] std::string log_path(JobId job) const override {
    return logs.empty() ? "" : logs + std::to_string(job.value);
  }
  [[nodiscard]] Memory log_size(JobId job) const override {
    return Memory::mib(job.value == 2 ? 9 : 1);
  }

  std::string said;
  std::string logs;  ///< where its logs are; "" if nowhere on this machine
  std::vector<executor::Doubt> doubtful;
};

Job ended_on(std::uint64_t id, const std::string& node) {
  Job job;
  job.id = JobId(id);
  job.spec.user = {1001, "bob"};
  job.state = Ended{};
  auto& ended = std::get<Ended>(job.state);
  ended.attempt.emplace();
  ended.attempt->number = 1;
  ended.attempt->allocation.node = node;
  return job;
}

Job running_on(std::uint64_t id, const std::string& node) {
  Job job;
  job.id = JobId(id);
  job.spec.user = {1000, "alice"};
  Running running;
  running.attempt.number = 1;
  running.attempt.allocation.node = node;
  job.state = running;
  return job;
}

LaunchOrder order_for(const Job& job) {
  LaunchOrder order;
  order.job = job.id;
  order.attempt = 1;
  order.node = attempt_of(job)->allocation.node;
  return order;
}

std::vector<NodeExecutor> two_executors() {
  std::vector<NodeExecutor> executors;
  executors.push_back({std::make_unique<Noted>(), {"n1"}});
  executors.push_back({std::make_unique<Noted>(), {"n2", "n4"}});
  return executors;
}

engine::State engine_with(const std::vector<Job>& jobs) {
  engine::State state({}, "boot");
  for (const Job& job : jobs) state.restore(Job(job));
  state.restored(JobId(4));
  return state;
}

class Routing : public testing::Test {
 protected:
  Routing() {
    Payload payload;
    payload.argv = {"true"};
    for (const Job* job : {&here, &there, &nowhere}) {
      EXPECT_TRUE(store->commit({.saves = {job}, .payloads = {{job->id, &payload}}}));
    }
  }
  Job here = running_on(1, "n1");
  Job there = running_on(2, "n2");
  Job nowhere = running_on(3, "n3");
  std::unique_ptr<store::Store> store = store::Store::open(":memory:").value();
  std::vector<NodeExecutor> executors = two_executors();
  Noted& first = dynamic_cast<Noted&>(*executors[0].executor);
  Noted& second = dynamic_cast<Noted&>(*executors[1].executor);
  std::vector<engine::Event> posted;
  engine::State state = engine_with({here, there, nowhere});
  NodeDispatcher dispatcher{state, *store, executors, [this](engine::Event event) {
                              posted.push_back(std::move(event));
                            }};
};

TEST_F(Routing, EachOrderGoesToItsNode) {
  for (const Job* job : {&here, &there}) {
    dispatcher.launch(order_for(*job));
    dispatcher.suspend(*job);
    dispatcher.resume(*job);
    Job parks = *job;
    auto& running = std::get<Running>(parks.state);
    running.parked = {.how = Parking::Begun, .memory = Memory::gib(9)};
    dispatcher.suspend(parks);
    running.parked.how = Parking::Parked;
    dispatcher.suspend(parks);
    dispatcher.signal(*job, 10);
    dispatcher.change_limit(*job);
    dispatcher.stop(*job);
    EXPECT_TRUE(std::holds_alternative<executor::StillRuns>(dispatcher.adopt(*job)));
  }
  EXPECT_EQ(first.said,
            "launch 1 true; suspend 1; resume 1; suspend 1 and park; suspend 1; signal 1 10; limit "
            "1; stop 1 0; ");
  EXPECT_EQ(second.said,
            "launch 2 true; suspend 2; resume 2; suspend 2 and park; suspend 2; signal 2 10; limit "
            "2; stop 2 0; ");
  EXPECT_TRUE(posted.empty());
}

TEST_F(Routing, AnExecutorServesSeveralNodes) {
  for (const char* node : {"n2", "n4"}) dispatcher.stop(running_on(2, node));
  EXPECT_EQ(second.said, "stop 2 0; stop 2 0; ");
  EXPECT_EQ(first.said, "");
}

TEST_F(Routing, EveryExecutorIsToldWhatIsKnownAndAskedWhatIsNot) {
  dispatcher.sweep({{JobId(1), 1}, {JobId(2), 1}});
  EXPECT_EQ(first.said, "keep 1; keep 2; ");
  EXPECT_EQ(second.said, "keep 1; keep 2; ");
  first.doubtful = {{JobId(1), "the disk does not answer"}};
  second.doubtful = {{JobId(2), "the line is cut"}};
  const auto doubts = dispatcher.doubts();
  ASSERT_EQ(doubts.size(), 2U);
  EXPECT_EQ(doubts[0].why, "the disk does not answer");
  EXPECT_EQ(doubts[1].job, JobId(2));
}

TEST_F(Routing, ALogIsWhereTheNodeOfTheJobHasIt) {
  first.logs = "/logs/";
  EXPECT_EQ(dispatcher.log_path(here), "/logs/1");
  EXPECT_EQ(dispatcher.log_path(there), "") << "it is not on this machine";
  EXPECT_EQ(dispatcher.log_path(ended_on(2, "n2")), "");
  EXPECT_EQ(dispatcher.log_path(nowhere), "/logs/3");
  Job queued;
  queued.id = JobId(4);
  EXPECT_EQ(dispatcher.log_path(queued), "/logs/4");
}

TEST_F(Routing, TheLargestLogIsSoughtOnEveryNode) {
  EXPECT_EQ(dispatcher.largest_log(), "the largest log is that of job 2 of alice, which runs (9M)");
}

TEST_F(Routing, TheLargestLogMayBeThatOfAJobThatHasEnded) {
  engine::State with_ended = engine_with({here, ended_on(2, "n2")});
  const NodeDispatcher of_ended{with_ended, *store, executors, {}};
  EXPECT_EQ(of_ended.largest_log(),
            "the largest log is that of job 2 of bob, which has ended (9M)");
}

TEST_F(Routing, WhatNobodyRunsIsItsNodesFailureAndNeverRunElsewhere) {
  dispatcher.launch(order_for(nowhere));
  dispatcher.stop(nowhere);
  dispatcher.suspend(nowhere);
  EXPECT_EQ(first.said + second.said, "");
  ASSERT_EQ(posted.size(), 2U);
  EXPECT_EQ(std::get<engine::event::NodeUnreachable>(posted[0]).node, "n3");
  const auto& ended = std::get<engine::event::AttemptEnded>(posted[1]);
  EXPECT_EQ(ended.job, nowhere.id);
  EXPECT_EQ(ended.outcome.reason, EndReason::NotStarted);
  EXPECT_EQ(ended.outcome.failure.kind, FailureKind::Node);
  EXPECT_EQ(ended.outcome.message, "nobody runs jobs on node n3");
  EXPECT_TRUE(std::holds_alternative<executor::Unknown>(dispatcher.adopt(nowhere)));
}

}  // namespace
}  // namespace gflow::daemon
