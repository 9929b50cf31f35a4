// SPDX-License-Identifier: Apache-2.0
#include "engine/dependencies.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/step.h"

namespace gflow::engine {
namespace dependencies_test {
namespace {

const User kAlice{1000, "alice"};
const User kBob{1001, "bob"};
const Principal kByAlice{.name = "alice", .uid = 1000, .projects = {}};
constexpr Now kNow{WallTime(std::chrono::hours(1000)), MonoTime(std::chrono::hours(1))};

/// A queue in which nothing starts: every job is on hold or waits for one that is.
struct Queue {
  explicit Queue(Policy policy = {}) : state(std::move(policy), "boot") {
    state.restored(JobId(1));
    Machine machine;
    machine.name = "n1";
    machine.cpus = 4;
    (void)step(state, event::NodesChanged{{machine}}, kNow);
  }

  Result<std::vector<JobId>> ask(const Event& event) {
    effects = step(state, event, kNow);
    EXPECT_EQ(state.check(), "");
    for (const Effect& effect : effects) {
      if (const auto* answer = std::get_if<effect::Answer>(&effect)) return answer->jobs;
    }
    return fail(Code::Failure, "no answer");
  }
  std::vector<JobId> submit(int count, Dependencies on = {}, const User& user = kAlice) {
    event::Submit submit{{}, system_principal()};
    JobSpec spec;
    spec.user = user;
    spec.hold = on.jobs.empty();
    spec.dependencies = std::move(on);
    submit.specs.assign(static_cast<std::size_t>(count), spec);
    return ask(submit).value_or(std::vector<JobId>{});
  }

  State state;
  std::vector<Effect> effects;
};

std::size_t notices(const std::vector<Effect>& effects) {
  return static_cast<std::size_t>(std::ranges::count_if(effects, [](const Effect& effect) {
    return std::holds_alternative<effect::Notify>(effect);
  }));
}

/// N jobs, N that depend on all of them: an edge is looked at when it comes, when what it depends
/// on ends, and when it goes.
TEST(Dependencies, CancellingCostsEachEdgeThreeTimes) {
  for (const int n : {10, 20, 40, 80}) {
    Queue queue;
    const auto edges = static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(n);
    std::vector<JobId> all = queue.submit(n);
    const std::vector<JobId> dependents =
        queue.submit(n, {.jobs = all, .mode = DependencyMode::All, .auto_cancel = false});
    ASSERT_EQ(dependents.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(queue.state.dependency_visits(), edges) << n;
    all.insert(all.end(), dependents.begin(), dependents.end());
    ASSERT_TRUE(queue.ask(event::Cancel{all, kByAlice}));
    EXPECT_EQ(queue.state.count(Status::Cancelled), all.size());
    EXPECT_LE(queue.state.dependency_visits(), 3 * edges) << n;
    EXPECT_LE(notices(queue.effects), 3 * all.size()) << n;
  }
}

TEST(Dependencies, ManyThatDependOnOneCostOneEachWhenTheyGo) {
  Queue queue;
  const std::vector<JobId> one = queue.submit(1);
  std::vector<JobId> many = queue.submit(500, {.jobs = one});
  many.pop_back();
  ASSERT_TRUE(queue.ask(event::Cancel{many, kByAlice}));
  EXPECT_EQ(queue.state.dependency_visits(), 500 + many.size());
  EXPECT_EQ(queue.state.dependents(one.front()).size(), 1U);
}

TEST(Dependencies, UpdatingManyWalksTheGraphOnce) {
  for (const int n : {10, 20, 40, 80}) {
    Queue queue;
    const auto edges = static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(n);
    const std::vector<JobId> before = queue.submit(n);
    const std::vector<JobId> after = queue.submit(n);
    JobChanges changes;
    changes.set(&JobSpec::dependencies, Dependencies{.jobs = before});
    ASSERT_TRUE(queue.ask(event::Update{after, kByAlice, changes}));
    EXPECT_EQ(queue.state.dependency_visits(), edges);
    // And the other way round it is a circle.
    changes.set(&JobSpec::dependencies, Dependencies{.jobs = after});
    const auto circle = queue.ask(event::Update{before, kByAlice, changes});
    ASSERT_FALSE(circle);
    EXPECT_NE(circle.error().message.find("form a cycle"), std::string::npos);
    EXPECT_EQ(queue.state.dependency_visits(), edges);
  }
}

TEST(Dependencies, WhatEndsTogetherIsToldOnce) {
  Queue queue;
  const std::vector<JobId> before = queue.submit(20);
  const std::vector<JobId> after =
      queue.submit(1, {.jobs = before, .mode = DependencyMode::All, .auto_cancel = false});
  ASSERT_TRUE(queue.ask(event::Cancel{before, kByAlice}));
  EXPECT_EQ(notices(queue.effects), before.size() + after.size());
}

/// However long the chain, and whenever a job of it was submitted.
TEST(Dependencies, TheFirstCauseIsNamed) {
  Queue queue;
  const event::Submit submit{{{.user = kAlice}}, system_principal()};
  const JobId first = queue.ask(submit).value().front();
  const JobId second = queue.submit(1, {.jobs = {first}}).front();
  const JobId third = queue.submit(1, {.jobs = {second}}).front();
  Outcome failed;
  failed.exit_code = 1;
  (void)step(queue.state, event::AttemptEnded{first, 1, failed}, kNow);
  const JobId late = queue.submit(1, {.jobs = {third}}).front();
  for (const JobId id : {second, third, late}) {
    const auto& end = std::get<Ended>(queue.state.find(id)->state);
    EXPECT_EQ(outcome_text(end.outcome),
              fmt::format("a job it depends on did not finish: job {} (Failed)", first.value));
  }
}

TEST(Dependencies, AJobThatStartedDoesNotDependAnyMore) {
  Queue queue;
  event::Submit submit{{}, system_principal()};
  submit.specs = {{.user = kAlice, .max_retries = 1}};
  const JobId first = queue.ask(submit).value().front();
  submit.specs.front().dependencies.jobs = {first};
  const JobId second = queue.ask(submit).value().front();
  (void)step(queue.state, event::AttemptEnded{first, 1, Outcome{}}, kNow);
  EXPECT_EQ(status_of(*queue.state.find(second)), Status::Starting);
  EXPECT_TRUE(queue.state.dependents(first).empty());
  Outcome failed;
  failed.exit_code = 1;
  (void)step(queue.state, event::AttemptEnded{second, 1, failed}, kNow);
  EXPECT_TRUE(queue.state.dependents(first).empty());
  EXPECT_EQ(queue.state.check(), "");
}

TEST(Dependencies, OfOneRequestAreLimitedWhateverAUserMayHave) {
  Queue queue;
  const std::vector<JobId> many = queue.submit(500);
  event::Submit more{{}, system_principal()};
  more.specs.assign(200, {.user = kAlice, .dependencies = {.jobs = many}});
  EXPECT_TRUE(queue.ask(more));
  more.specs.push_back(more.specs.front());
  const auto refused = queue.ask(more);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Usage);
  EXPECT_TRUE(refused.error().message.starts_with(
      "100500 dependencies in one request, and 100000 are the maximum"))
      << refused.error().message;
}

struct Limit {
  std::size_t Policy::* limit;
  const char* said;
};

class DependencyLimit : public testing::TestWithParam<Limit> {};

TEST_P(DependencyLimit, IsRefusedWithItsNumbers) {
  Policy policy;
  policy.*GetParam().limit = 6;
  Queue queue(policy);
  const std::vector<JobId> three = queue.submit(3);
  const std::vector<JobId> seven = queue.submit(7);
  ASSERT_EQ(queue.submit(2, {.jobs = three}, kBob).size(), 2U);
  event::Submit more{{}, system_principal()};
  more.specs = {{.user = kBob, .dependencies = {.jobs = seven}}};
  const auto refused = queue.ask(more);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Exhausted);
  EXPECT_NE(refused.error().message.find(GetParam().said), std::string::npos)
      << refused.error().message;
  // By an update as well, and nothing has changed.
  JobChanges changes;
  changes.set(&JobSpec::dependencies, Dependencies{.jobs = three});
  const Principal root = system_principal();
  if (GetParam().limit != &Policy::max_dependencies_per_job) {
    ASSERT_FALSE(queue.ask(event::Update{{seven[0]}, root, changes}) &&
                 queue.ask(event::Update{seven, root, changes}));
  } else {
    changes.set(&JobSpec::dependencies, Dependencies{.jobs = seven});
    ASSERT_FALSE(queue.ask(event::Update{three, root, changes}));
  }
  EXPECT_LE(queue.state.dependents(three[0]).size(), 3U);
}

INSTANTIATE_TEST_SUITE_P(
    OfAJobAUserAndAll,
    DependencyLimit,
    testing::Values(
        Limit{&Policy::max_dependencies_per_job, "it depends on 7 jobs; the maximum is 6"},
        Limit{&Policy::max_dependencies_per_user,
              "7 more dependencies: the user's waiting jobs have 6, and the maximum is 6"},
        Limit{&Policy::max_dependencies,
              "7 more dependencies: all waiting jobs have 6, and the maximum is 6"}));

}  // namespace
}  // namespace dependencies_test
}  // namespace gflow::engine
