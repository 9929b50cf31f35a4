// SPDX-License-Identifier: Apache-2.0
// Crashes at every step of every flow: run the first k steps, drop memory, open the store again, go
// on, and check what was promised. No acknowledged job is lost, none runs twice, the truth is told.
#include "daemon/shell.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>

#include "core/machine_for_tests.h"

namespace gflow::daemon {
namespace {

struct Crash {};

/// The world outside: attempts that run whether a daemon watches or not.
class World : public Dispatcher {
 public:
  struct Run {
    bool revoked = false;
    bool told_to_stop = false;
    bool stands = false;
    std::optional<std::chrono::seconds> limit;
    std::optional<Outcome> outcome;
  };
  std::map<std::pair<JobId, int>, Run> runs;
  int steps_left = -1;  ///< until the crash; -1: none comes
  int steps_taken = 0;
  bool cannot_look = false;  ///< adopt() learns nothing

  /// One thing is about to be done.
  void step() {
    if (steps_left == 0) throw Crash{};
    if (steps_left > 0) --steps_left;
    ++steps_taken;
  }
  void launch(const LaunchOrder& order) override {
    step();
    const auto [at, fresh] = runs.try_emplace({order.job, order.attempt});
    EXPECT_TRUE(fresh) << "attempt " << at->first.second << " of job " << order.job.value
                       << " is started twice";
    at->second.limit = order.time_limit;
  }
  executor::Adoption adopt(const Job& job) override {
    if (cannot_look) return executor::Unknown{"too many open files"};
    Run& run = runs[{job.id, attempt_of(job)->number}];
    if (run.outcome) return executor::Over{*run.outcome};
    const bool launched = launched_.contains({job.id, attempt_of(job)->number});
    if (launched) return executor::StillRuns{77};
    run.revoked = true;
    return executor::NeverRan{};
  }
  void stop(const Job& job) override {
    step();
    Run& run = runs[{job.id, attempt_of(job)->number}];
    run.told_to_stop = true;
    run.stands = false;  // so that it can clean up
  }
  void suspend(const Job& job) override {
    step();
    runs[{job.id, attempt_of(job)->number}].stands = true;
  }
  void resume(const Job& job) override {
    step();
    runs[{job.id, attempt_of(job)->number}].stands = false;
  }
  void move(const Job& job) override {
    step();
    runs[{job.id, attempt_of(job)->number}].stands = false;
  }
  void signal(const Job& /*job*/, int /*number*/) override { step(); }
  void change_limit(const Job& job) override {
    step();
    runs[{job.id, attempt_of(job)->number}].limit = job.spec.time_limit;
  }
  void cut(const MadeSlice& /*slice*/) override { step(); }
  void forget_attempt(JobId job, int attempt) override {
    step();
    const auto run = runs.find({job, attempt});
    EXPECT_TRUE(run == runs.end() || run->second.outcome || run->second.revoked);
  }
  void forget_job(JobId /*job*/) override { step(); }
  [[nodiscard]] std::string largest_log() const override { return "job 1 fills it"; }

  void note_launched() {
    for (const auto& [key, run] : runs) {
      if (!run.revoked) launched_.insert(key);
    }
  }
  [[nodiscard]] int count(JobId job) const {
    return static_cast<int>(std::ranges::count_if(
        runs, [job](const auto& run) { return run.first.first == job && !run.second.revoked; }));
  }

 private:
  std::set<std::pair<JobId, int>> launched_;
};

/// A daemon without sockets that can be dropped and started again over the same file and world.
class Life {
 public:
  explicit Life(std::string path) : path_(std::move(path)) { start(); }

  void start() {
    store_ = *store::Store::open(path_);
    state_.emplace(engine::Policy{}, "boot");
    auto loaded = *store_->load();
    for (Job& job : loaded.jobs) state_->restore(std::move(job));
    for (JobRange& range : loaded.ranges) state_->restore(std::move(range));
    state_->restore(std::move(loaded.drains));
    state_->restored(loaded.next_id);
    shell_.emplace(*state_, *store_, world, nullptr);
    world.note_launched();
    shell_->take_over();
    Machine machine = machine_with_gpus("n1", 2, "NVIDIA GeForce RTX 3090", Memory::gib(24));
    machine.cpus = 4;
    machine.memory = Memory::gib(8);
    shell_->post(engine::event::NodesChanged{{machine}});
    tick();
  }

  void crash() {
    shell_.reset();
    state_.reset();
    store_.reset();
  }

  void tick() {
    world.step();  // the crash before the commit
    now_.mono += std::chrono::seconds(10);
    now_.wall += std::chrono::seconds(10);
    const auto ticked = shell_->tick(now_);
    ASSERT_TRUE(ticked) << ticked.error().message;
    while (launches_at_once && shell_->has_launches()) shell_->launch_next();
    ASSERT_EQ(state_->check(), "");
    world.note_launched();
    for (const auto& [key, run] : world.runs) {
      const Job* job = state_->find(key.first);
      if (job == nullptr || !is_active(*job) || attempt_of(*job)->number != key.second) continue;
      ASSERT_EQ(run.stands, status_of(*job) == Status::Suspended) << "job " << key.first.value;
      ASSERT_EQ(run.limit, job->spec.time_limit) << "job " << key.first.value;
      if (status_of(*job) == Status::Completing) {
        ASSERT_TRUE(run.told_to_stop) << "job " << key.first.value;
      }
    }
  }

  /// Submits under a key; the ids once it is acknowledged.
  void submit(const std::string& key,
              std::vector<JobSpec> specs,
              std::optional<TaskRange> tasks = {}) {
    const Principal alice{.name = "alice", .uid = 1000, .role = Role::Operator, .projects = {}};
    api::SubmitRequest request;
    for (JobSpec& spec : specs) {
      spec.user = record_of(alice);
      Payload payload;
      payload.argv = {"true"};
      request.items.push_back({std::move(spec), payload, {}, {}, tasks});
    }
    request.idempotency_key = key;
    shell_->submit(std::move(request), alice, [this, key](auto ids) {
      world.step();
      ASSERT_TRUE(ids) << ids.error().message;
      acknowledged[key] = *ids;
    });
    tick();
  }

  /// The clock of the calendar is set; no time passes.
  void set_clock(std::chrono::hours by) { now_.wall += by; }

  void post(engine::Event event) {
    shell_->post(std::move(event));
    tick();
  }
  void request(engine::Event event) {
    shell_->post(std::move(event), [this](const auto&) { world.step(); });
    tick();
  }

  void adopted(JobId id, const executor::Adoption& how) {
    shell_->adopted(id, attempt_of(*state_->find(id))->number, how);
    tick();
  }

  /// The program of a job's attempt ends; the daemon hears of it if it lives.
  void finish(JobId id, Outcome outcome) {
    const Job* job = state_->find(id);
    if (job == nullptr || !is_active(*job)) return;
    auto& run = world.runs[{id, attempt_of(*job)->number}];
    if (!run.outcome) run.outcome = outcome;
    shell_->post(engine::event::AttemptEnded{id, attempt_of(*job)->number, *run.outcome});
    tick();
  }

  [[nodiscard]] const engine::State& state() const { return *state_; }

  /// Carries out one launch that was put off.
  void launch_next() {
    world.step();
    shell_->launch_next();
    world.note_launched();
  }
  [[nodiscard]] bool has_launches() const { return shell_->has_launches(); }
  [[nodiscard]] bool idle() const { return shell_->idle(); }

  World world;
  bool launches_at_once = true;
  std::map<std::string, std::vector<JobId>> acknowledged;

 private:
  std::string path_;
  std::unique_ptr<store::Store> store_;
  std::optional<engine::State> state_;
  std::optional<Shell> shell_;
  Now now_{WallTime(std::chrono::hours(500'000)), MonoTime(std::chrono::hours(1))};
};

JobSpec spec(int gpus, std::vector<JobId> after = {}) {
  JobSpec made;
  made.request.gpus = gpus;
  made.dependencies.jobs = std::move(after);
  return made;
}

using Step = std::function<void(Life&)>;
struct Flow {
  std::string name;
  std::vector<Step> steps;  ///< each is repeated if the daemon died in it
  std::map<std::uint64_t, Status> ends;
};

const Principal kAlice{.name = "alice", .uid = 1000, .projects = {}};

Step submits(std::string key, std::vector<JobSpec> specs) {
  return [key, specs](Life& life) { life.submit(key, specs); };
}
/// Tasks of an array, numbered from 1 on.
Step submits_array(std::string key, JobSpec spec, std::uint64_t count) {
  return [=](Life& life) { life.submit(key, {spec}, TaskRange{.count = count}); };
}
Step finishes(std::uint64_t id, int exit_code = 0, EndReason reason = EndReason::Exited) {
  return [=](Life& life) { life.finish(JobId(id), {.reason = reason, .exit_code = exit_code}); };
}
/// The supervisor of a job's attempt took it.
Step starts(std::uint64_t id) {
  return [id](Life& life) {
    const Job* job = life.state().find(JobId(id));
    if (job == nullptr || !is_active(*job)) return;
    life.post(engine::event::AttemptStarted{JobId(id), attempt_of(*job)->number, 77});
  };
}
Step cancels(std::uint64_t id) {
  return [id](Life& life) { life.request(engine::event::Cancel{{JobId(id)}, kAlice}); };
}
/// Time passes.
Step ticks() {
  return [](Life& life) { life.post(engine::event::Tick{}); };
}
/// Nothing of it could be started, through no fault of its own.
Step cannot_start(std::uint64_t id, FailureKind kind) {
  return [=](Life& life) {
    Outcome outcome{.reason = EndReason::NotStarted, .message = "no space"};
    outcome.failure.kind = kind;
    life.finish(JobId(id), outcome);
  };
}
/// An administrator takes a device out.
Step drains(int gpu) {
  return [gpu](Life& life) {
    engine::event::Drain drain;
    drain.what.gpu = gpu;
    drain.what.reason = "fan";
    drain.by = {.name = "root", .uid = 0, .role = Role::Administrator, .projects = {}};
    life.request(drain);
  };
}
Step sees(std::uint64_t id, Status status) {
  return [=](Life& life) {
    const Job* job = life.state().find(JobId(id));
    ASSERT_NE(job, nullptr);
    EXPECT_EQ(status_name(status_of(*job)), status_name(status)) << "job " << id;
  };
}
Step has_drained(int gpu) {
  return [gpu](Life& life) {
    ASSERT_EQ(life.state().drains().size(), 1U);
    EXPECT_EQ(life.state().drains().front().gpu, gpu);
  };
}
Step limits(std::uint64_t id, std::optional<std::chrono::seconds> limit) {
  return [=](Life& life) {
    engine::event::Update update{{JobId(id)}, kAlice, {}};
    update.changes.set(&JobSpec::time_limit, limit);
    life.request(update);
  };
}

Step suspends(std::uint64_t id) {
  return [id](Life& life) { life.request(engine::event::Suspend{{JobId(id)}, kAlice}); };
}
Step resumes(std::uint64_t id) {
  return [id](Life& life) { life.request(engine::event::Resume{{JobId(id)}, kAlice}); };
}

std::vector<Flow> flows() {
  JobSpec retried = spec(1);
  retried.max_retries = 1;
  JobSpec requeued = spec(1);
  requeued.requeue = true;
  JobSpec stoppable = spec(2);
  stoppable.preemption = Preemption::Requeue;
  JobSpec suspendable = spec(2);
  suspendable.preemption = Preemption::Suspend;
  suspendable.request.gpu_memory = Memory::gib(8);
  JobSpec small = spec(2);
  small.request.gpu_memory = Memory::gib(8);
  JobSpec limited = spec(1);
  limited.time_limit = std::chrono::seconds(600);
  JobSpec urgent = spec(2);
  urgent.priority = 200;
  urgent.request.gpu_memory = Memory::gib(12);
  return {
      {"an array starts bit by bit",
       {submits_array("a", spec(1), 6),
        starts(1),
        finishes(2),
        cancels(5),
        finishes(1),
        finishes(3),
        finishes(4, 1),
        finishes(6)},
       {{1, Status::Finished},
        {2, Status::Finished},
        {3, Status::Finished},
        {4, Status::Failed},
        {5, Status::Cancelled},
        {6, Status::Finished}}},
      {"an array that waits for what fails",
       {submits("a", {spec(1)}), submits_array("b", spec(1, {JobId(1)}), 3), finishes(1, 1)},
       {{1, Status::Failed},
        {2, Status::Cancelled},
        {3, Status::Cancelled},
        {4, Status::Cancelled}}},
      {"made to stand still",
       {submits("a", {suspendable}),
        starts(1),
        submits("b", {urgent}),
        sees(1, Status::Suspended),
        finishes(2),
        sees(1, Status::Running),
        finishes(1)},
       {{1, Status::Finished}, {2, Status::Finished}}},
      {"suspended and resumed by hand",
       {submits("a", {small}),
        starts(1),
        suspends(1),
        submits("b", {small}),
        finishes(2),
        sees(1, Status::Suspended),
        resumes(1),
        sees(1, Status::Running),
        finishes(1)},
       {{1, Status::Finished}, {2, Status::Finished}}},
      {"cancel while it is suspended",
       {submits("a", {suspendable}),
        starts(1),
        submits("b", {urgent}),
        cancels(1),
        finishes(1, 0, EndReason::Cancelled),
        finishes(2)},
       {{1, Status::Cancelled}, {2, Status::Finished}}},
      {"made to go",
       {submits("a", {stoppable}),
        starts(1),
        submits("b", {urgent}),
        sees(1, Status::Completing),
        finishes(1, 0, EndReason::Preempted),
        finishes(2),
        finishes(1)},
       {}},
      {"a device is taken out",
       {drains(1), submits("a", {spec(1)}), submits("b", {spec(1)}), finishes(1), has_drained(1)},
       {{1, Status::Finished}}},
      {"one job", {submits("a", {spec(1)}), finishes(1)}, {{1, Status::Finished}}},
      {"pipeline",
       {submits("a", {spec(0)}),
        submits("b", {spec(2, {JobId(1)})}),
        submits("c", {spec(0, {JobId(2)})}),
        finishes(1),
        finishes(2),
        finishes(3)},
       {{1, Status::Finished}, {2, Status::Finished}, {3, Status::Finished}}},
      {"failure cascades",
       {submits("a", {spec(0)}), submits("b", {spec(0, {JobId(1)})}), finishes(1, 3)},
       {{1, Status::Failed}, {2, Status::Cancelled}}},
      {"cancel while it ranges",
       {submits("a", {spec(2)}),
        submits("b", {spec(1)}),
        cancels(1),
        finishes(1, 0, EndReason::Cancelled),
        finishes(2)},
       {{1, Status::Cancelled}, {2, Status::Finished}}},
      {"cancel while it waits",
       {submits("a", {spec(2)}), submits("b", {spec(1)}), cancels(2), finishes(1)},
       {{1, Status::Finished}, {2, Status::Cancelled}}},
      {"time limit",
       {submits("a", {spec(1)}),
        limits(1, std::chrono::seconds(600)),
        finishes(1, 0, EndReason::TimeLimit)},
       {{1, Status::Timeout}}},
      {"time limit taken away",
       {submits("a", {limited}), starts(1), limits(1, std::nullopt), finishes(1)},
       {{1, Status::Finished}}},
      {"all of many",
       {submits("a", {spec(1), spec(1), spec(1)}), finishes(1), finishes(2), finishes(3)},
       {{1, Status::Finished}, {2, Status::Finished}, {3, Status::Finished}}},
      {"retry", {submits("a", {retried}), finishes(1, 1), finishes(1, 0)}, {}},
      {"supervisor killed",
       {submits("a", {requeued}), finishes(1, 0, EndReason::SupervisorDied), ticks(), finishes(1)},
       {}},
      {"the node fails",
       {submits("a", {spec(1), spec(2)}),
        cannot_start(1, FailureKind::Node),
        ticks(),
        finishes(1),
        finishes(2)},
       {}},
  };
}

/// Plays a flow with a crash after `steps` steps; how many there would have been.
int play(const Flow& flow, int steps, const std::string& path) {
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  Life life(path + "/gflow.db");
  life.world.steps_left = steps;
  life.world.steps_taken = 0;
  for (const Step& step : flow.steps) {
    for (bool done = false; !done;) {
      try {
        step(life);
        done = true;
      } catch (const Crash&) {
        life.world.steps_left = -1;
        life.crash();
        life.start();
      }
    }
  }
  for (const auto& [key, ids] : life.acknowledged) {
    for (const JobId id : ids) EXPECT_NE(life.state().find(id), nullptr) << "lost " << id.value;
  }
  for (const auto& [id, status] : flow.ends) {
    const Job* job = life.state().find(JobId(id));
    EXPECT_TRUE(job != nullptr && status_of(*job) == status)
        << "job " << id << " is "
        << (job == nullptr ? "not there" : std::string(status_name(status_of(*job))));
    EXPECT_LE(life.world.count(JobId(id)), 1) << "job " << id;
  }
  // A submission that was repeated made no second job.
  std::size_t wanted = 0;
  for (const auto& [key, ids] : life.acknowledged) wanted += ids.size();
  EXPECT_EQ(life.state().list({}).size(), wanted);
  return life.world.steps_taken;
}

class CrashAtEveryStep : public testing::TestWithParam<Flow> {};

TEST_P(CrashAtEveryStep, NothingAcknowledgedIsLostAndNothingRunsTwice) {
  const std::string path = testing::TempDir() + "/gflow-crash-" + std::to_string(::getpid()) + "-" +
                           std::to_string(testing::UnitTest::GetInstance()->random_seed());
  const int steps = play(GetParam(), -1, path);
  ASSERT_GT(steps, 4);
  for (int k = 0; k < steps; ++k) {
    SCOPED_TRACE("crash after " + std::to_string(k) + " of " + std::to_string(steps));
    play(GetParam(), k, path);
    if (HasFailure()) break;
  }
  std::filesystem::remove_all(path);
}

TEST(Idempotency, AKeyIsKnownWhateverTheClockSays) {
  Life life(testing::TempDir() + "/gflow-key-" + std::to_string(::getpid()) + ".db");
  life.submit("key", {spec(0)});
  const auto first = life.acknowledged.at("key");
  for (const auto by : {std::chrono::hours(25), std::chrono::hours(-1000)}) {
    life.set_clock(by);
    life.submit("key", {spec(0)});
    EXPECT_EQ(life.acknowledged.at("key"), first);
  }
}

TEST(TakeOver, OfWhatIsNotKnownNothingIsSaid) {
  const std::string path = testing::TempDir() + "/gflow-unknown-" + std::to_string(::getpid());
  std::filesystem::create_directories(path);
  Life life(path + "/gflow.db");
  life.submit("a", {spec(2)});
  starts(1)(life);
  life.submit("b", {spec(1)});
  cancels(1)(life);
  life.crash();
  life.world.cannot_look = true;
  life.start();
  const auto status = [&life](std::uint64_t id) {
    return status_of(*life.state().find(JobId(id)));
  };
  EXPECT_EQ(status(1), Status::Completing);
  EXPECT_EQ(status(2), Status::Queued) << "what job 1 holds was given away";
  // Once it is known, what was asked of it meanwhile is said.
  life.world.runs.begin()->second.told_to_stop = false;
  life.adopted(JobId(1), executor::StillRuns{77});
  EXPECT_TRUE(life.world.runs.begin()->second.told_to_stop);
  EXPECT_EQ(status(2), Status::Queued);
  const Outcome cancelled{.reason = EndReason::Cancelled};
  life.world.runs.begin()->second.outcome = cancelled;
  life.adopted(JobId(1), executor::Over{cancelled});
  EXPECT_EQ(status(1), Status::Cancelled);
  EXPECT_EQ(status(2), Status::Starting);
  life.crash();
  std::filesystem::remove_all(path);
}

std::string flow_name(const testing::TestParamInfo<Flow>& flow) {
  std::string name = flow.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

TEST(Launches, AreCarriedOutOneAtATimeAfterTheAnswer) {
  Life life(testing::TempDir() + "/gflow-launches-" + std::to_string(::getpid()) + ".db");
  life.launches_at_once = false;
  life.submit("a", {spec(0), spec(0), spec(0)});
  EXPECT_EQ(life.acknowledged.at("a").size(), 3U) << "answered before anything was launched";
  EXPECT_TRUE(life.world.runs.empty());
  life.launch_next();
  EXPECT_EQ(life.world.count(JobId(1)), 1);
  EXPECT_EQ(life.world.runs.size(), 1U);
  // One that is cancelled before its tick never starts, and is over at once.
  cancels(2)(life);
  life.tick();
  sees(2, Status::Cancelled)(life);
  life.launch_next();
  EXPECT_FALSE(life.has_launches());
  EXPECT_TRUE(life.idle());
  EXPECT_EQ(life.world.count(JobId(2)), 0);
  EXPECT_EQ(life.world.count(JobId(3)), 1);
}

TEST(Launches, OfADaemonThatDiesAreTakenBackAndMadeOnce) {
  Life life(testing::TempDir() + "/gflow-launches-died-" + std::to_string(::getpid()) + ".db");
  life.launches_at_once = false;
  life.submit("a", {spec(0), spec(0)});
  life.launch_next();
  life.crash();
  life.launches_at_once = true;
  life.start();
  life.tick();
  for (const std::uint64_t id : {1U, 2U}) {
    EXPECT_EQ(life.world.count(JobId(id)), 1) << id;
    finishes(id)(life);
    sees(id, Status::Finished)(life);
  }
}

/// What is told to an attempt finds it launched.
TEST(Launches, ComeBeforeWhatIsToldToThem) {
  Life life(testing::TempDir() + "/gflow-launches-told-" + std::to_string(::getpid()) + ".db");
  life.launches_at_once = false;
  JobSpec suspendable = spec(2);
  suspendable.preemption = Preemption::Suspend;
  suspendable.request.gpu_memory = Memory::gib(8);
  life.submit("a", {suspendable});
  JobSpec urgent = spec(2);
  urgent.priority = 200;
  urgent.request.gpu_memory = Memory::gib(12);
  life.submit("b", {urgent});
  while (life.has_launches()) life.launch_next();
  EXPECT_EQ(life.world.count(JobId(1)), 1);
}

INSTANTIATE_TEST_SUITE_P(Flows, CrashAtEveryStep, testing::ValuesIn(flows()), flow_name);

}  // namespace
}  // namespace gflow::daemon
