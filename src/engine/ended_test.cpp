// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "base/kept_sentence.h"
#include "engine/step.h"
#include "engine/world_test.h"

/// How long ended jobs are kept.
namespace gflow::engine {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;

constexpr Now kBegin{WallTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)),
                     MonoTime(1h)};

Now after(days wall, std::chrono::milliseconds mono) {
  return {kBegin.wall + wall, kBegin.mono + mono};
}

bool forgets(State& state, Now now) {
  return std::ranges::any_of(step(state, event::Tick{}, now), [](const Effect& effect) {
    return std::holds_alternative<effect::Forget>(effect);
  });
}

/// A state that has seen so much time pass, with a job that ended after so much.
State with_ended(std::chrono::milliseconds seen, std::chrono::milliseconds lived) {
  State state(Policy{.keep_ended = days(90)}, "boot");
  state.set_lived(seen, kBegin.mono);
  Job job;
  job.id = JobId(1);
  job.spec.user = {1000, "alice"};
  job.state = Ended{Status::Finished, {}, kBegin.wall, std::nullopt, lived};
  state.restore(std::move(job));
  state.restored(JobId(2));
  return state;
}

TEST(EndedJobs, AreKeptByTheTimeThatPassesAndNotByTheClock) {
  struct Case {
    const char* what;
    std::chrono::milliseconds seen;
    std::chrono::milliseconds lived;
    Now now;
    bool forgotten;
  };
  const Case cases[] = {
      {"the clock is set 400 days on", 0s, 0s, after(days(400), 1s), false},
      {"the clock is set back by as much", 0s, 0s, after(-days(400), 1s), false},
      {"time passes", 0s, 0s, after(days(90), days(90) + 1s), true},
      {"time passes, and the clock is set back", 0s, 0s, after(-days(5), days(90) + 1s), true},
      {"not yet", 0s, 0s, after(days(90), days(90)), false},
      {"most of it in other boots", days(89), 0s, after(days(89), days(1) + 1s), true},
      {"ended in another boot, not long ago", days(89), days(80), after(days(400), 1s), false},
      {"as above, later", days(89), days(80), after(days(85), days(81) + 1s), true},
  };
  for (const Case& c : cases) {
    State state = with_ended(c.seen, c.lived);
    EXPECT_EQ(forgets(state, c.now), c.forgotten) << c.what;
    EXPECT_EQ(state.find(JobId(1)) == nullptr, c.forgotten) << c.what;
    EXPECT_EQ(state.check(), "") << c.what;
  }
}

TEST(EndedJobs, NoteTheTimeThatHadPassed) {
  State state(Policy{}, "boot");
  state.set_lived(days(7), kBegin.mono);
  state.restored(JobId(1));
  Machine machine;
  machine.name = "n1";
  machine.cpus = 4;
  (void)step(state, event::NodesChanged{{machine}}, kBegin);
  JobSpec spec;
  spec.user = {1000, "alice"};
  spec.hold = true;
  const Principal alice{.name = "alice", .uid = 1000};
  (void)step(state, event::Submit{.specs = {spec}, .by = alice}, after(days(0), 1s));
  (void)step(state, event::Cancel{.jobs = {JobId(1)}, .by = alice}, after(days(0), 3s));
  const Job* job = state.find(JobId(1));
  ASSERT_TRUE(job != nullptr && is_ended(*job));
  EXPECT_EQ(std::get<Ended>(job->state).lived, days(7) + 3s);
}

/// The engine with jobs of several users, of which it remembers few.
class Few {
 public:
  static constexpr std::uint32_t kAlice = 1000;
  static constexpr std::uint32_t kMallory = 2000;

  explicit Few(std::size_t max_ended, Memory max_stored = Memory::gib(1))
      : state_(
            Policy{
                .keep_ended = days(90), .max_ended = max_ended, .max_stored_per_user = max_stored},
            "boot") {
    state_.set_lived(days(1), kBegin.mono);
    state_.restored(JobId(1));
    Machine machine;
    machine.name = "n1";
    machine.cpus = 4;
    tell(event::NodesChanged{{machine}});
  }

  /// So many jobs of a user that wait, on hold.
  std::vector<JobId> hold(std::uint32_t uid,
                          std::size_t count,
                          std::vector<JobId> after = {},
                          std::string command = "") {
    JobSpec spec;
    spec.command = std::move(command);
    spec.user = {uid, std::to_string(uid)};
    spec.hold = true;
    spec.dependencies = {.jobs = std::move(after), .auto_cancel = false};
    return submit(std::vector(count, spec));
  }
  std::vector<JobId> cancel(std::vector<JobId> jobs) {
    tell(event::Cancel{.jobs = jobs, .by = system_principal()});
    return jobs;
  }
  /// When one ended that ran now.
  WallTime run_at(std::uint32_t uid) {
    const JobId id = run(uid);
    return std::get<Ended>(state_.find(id)->state).at;
  }
  [[nodiscard]] std::optional<WallTime> forgotten() const { return state_.forgotten(); }
  /// A job that ran and ended.
  JobId run(std::uint32_t uid) {
    JobSpec spec;
    spec.user = {uid, std::to_string(uid)};
    const JobId id = submit({spec}).front();
    tell(event::AttemptStarted{id, 1, 1});
    tell(event::AttemptEnded{id, 1, Outcome{.reason = EndReason::Exited}});
    return id;
  }
  void pass(std::chrono::milliseconds time) {
    now_.wall += time;
    now_.mono += time;
    tell(event::Tick{});
  }
  /// Goes on with what a store would hold.
  void restart() {
    State next(state_.policy(), "boot");
    next.set_lived(state_.lived(now_.mono), now_.mono);
    for (const Job* job : state_.list({})) next.restore(Job(*job));
    next.restored(state_.next_id());
    state_ = std::move(next);
    EXPECT_EQ(state_.check(), "");
    tell(event::Tick{});
  }
  /// Why the last submission was.
  [[nodiscard]] const std::string& refused() const { return refused_; }
  [[nodiscard]] bool knows(JobId id) const { return state_.find(id) != nullptr; }
  [[nodiscard]] std::size_t known(const std::vector<JobId>& jobs) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(jobs, [this](JobId id) { return knows(id); }));
  }

 private:
  std::vector<JobId> submit(std::vector<JobSpec> specs) {
    std::vector<JobId> ids;
    const Event event = event::Submit{.specs = std::move(specs), .by = system_principal()};
    for (const Effect& effect : tell(event)) {
      if (const auto* answer = std::get_if<effect::Answer>(&effect)) {
        ids = answer->jobs.value_or(std::vector<JobId>());
        refused_ = answer->jobs ? "" : answer->jobs.error().message;
      }
    }
    return ids;
  }
  std::vector<Effect> tell(const Event& event) {
    auto effects = step(state_, event, now_);
    EXPECT_EQ(state_.check(), "");
    return effects;
  }

  State state_;
  Now now_ = kBegin;
  std::string refused_;
};

TEST(EndedJobs, OthersWaitForAreKeptAndDoNotCount) {
  Few few(5);
  const auto pinned = few.hold(Few::kMallory, 20);
  const auto waits = few.hold(Few::kMallory, 1, pinned);
  few.cancel(pinned);
  few.pass(2h);
  const JobId ran = few.run(Few::kAlice);
  EXPECT_TRUE(few.knows(ran));
  few.pass(2h);
  EXPECT_TRUE(few.knows(ran));
  EXPECT_EQ(few.known(pinned), 20U);
  few.restart();
  EXPECT_TRUE(few.knows(ran));
  EXPECT_EQ(few.known(pinned), 20U);
  few.cancel(waits);  // now nobody waits for them, and they are old
  EXPECT_EQ(few.known(pinned), 3U);
  EXPECT_EQ(few.known(waits), 1U);
  EXPECT_TRUE(few.knows(ran));
}

TEST(EndedJobs, ComeToBeWaitedForAfterTheyEnded) {
  Few few(2);
  const auto first = few.cancel(few.hold(Few::kAlice, 1));
  few.hold(Few::kAlice, 1, first);
  few.pass(1min);
  const auto later = few.cancel(few.hold(Few::kAlice, 2));
  few.pass(2h);
  few.cancel(few.hold(Few::kAlice, 1));
  EXPECT_EQ(few.known(first), 1U);
  EXPECT_EQ(few.known(later), 1U);
}

TEST(EndedJobs, OfWhoHasMostAreForgotten) {
  Few few(10);
  const JobId ran = few.run(Few::kAlice);
  const auto cancelled = few.cancel(few.hold(Few::kAlice, 2));
  for (int i = 0; i < 10; ++i) {
    few.cancel(few.hold(Few::kMallory, 20));
    few.pass(1s);
  }
  few.pass(2h);
  EXPECT_TRUE(few.knows(ran));
  EXPECT_EQ(few.known(cancelled), 2U);
}

TEST(EndedJobs, ThatNeverRanAreForgottenBeforeThoseThatDid) {
  Few few(4);
  const JobId ran = few.run(Few::kAlice);
  few.pass(1min);
  const auto never = few.cancel(few.hold(Few::kAlice, 8));
  few.pass(2h);
  EXPECT_TRUE(few.knows(ran));
  EXPECT_EQ(few.known(never), 3U);
}

TEST(EndedJobs, LeaveWhenTheLastThatWasForgottenEnded) {
  Few few(3);
  const WallTime first = few.run_at(Few::kAlice);
  few.pass(1min);
  few.run_at(Few::kMallory);
  EXPECT_EQ(few.forgotten(), std::nullopt);
  few.pass(1min);
  few.run_at(Few::kAlice);
  few.run_at(Few::kAlice);
  few.pass(2h);
  EXPECT_EQ(few.forgotten(), first) << "of who has most, though others ended before";
}

TEST(EndedJobs, AreKeptAnHourUnlessThereAreTwiceAsMany) {
  Few few(4);
  const auto jobs = few.cancel(few.hold(Few::kAlice, 8));
  few.pass(59min);
  EXPECT_EQ(few.known(jobs), 8U);
  few.cancel(few.hold(Few::kAlice, 1));
  EXPECT_EQ(few.known(jobs), 7U);
  few.pass(1min + 1ms);
  EXPECT_EQ(few.known(jobs), 3U);
}

TEST(EndedJobs, OfOneUserTakeNoMoreThanTheirJobsThatWaitMay) {
  // Each takes some 4 KiB.
  Few few(1000, Memory::mib(1));
  const JobId ran = few.run(Few::kAlice);
  const std::string long_text(4096, 'c');
  std::vector<JobId> never;
  for (int i = 0; i < 3; ++i) {
    const auto jobs = few.cancel(few.hold(Few::kMallory, 200, {}, long_text));
    EXPECT_EQ(few.known(jobs), 200U);
    never.insert(never.end(), jobs.begin(), jobs.end());
    few.pass(1s);
  }
  EXPECT_LT(few.known(never), 256U);
  EXPECT_GT(few.known(never), 240U);
  EXPECT_TRUE(few.knows(ran));
}

TEST(Submissions, OfOneUserHoldNoMoreThanTheyMay) {
  Few few(1000, Memory::mib(1));
  const std::string long_text(4096, 'c');
  const auto first = few.hold(Few::kMallory, 200, {}, long_text);
  EXPECT_EQ(first.size(), 200U);
  EXPECT_EQ(few.hold(Few::kMallory, 100, {}, long_text).size(), 0U);
  EXPECT_NE(few.refused().find("limits.max_stored_per_user"), std::string::npos) << few.refused();
  EXPECT_EQ(few.hold(Few::kAlice, 200, {}, long_text).size(), 200U);
  few.cancel(first);
  EXPECT_EQ(few.hold(Few::kMallory, 100, {}, long_text).size(), 100U);
}

TEST(EndedJobs, AreNotForgottenInTheStepThatEndsThem) {
  Few few(2);
  const auto jobs = few.cancel(few.hold(Few::kAlice, 50));
  EXPECT_EQ(few.known(jobs), 50U);
  few.pass(1ms);
  EXPECT_EQ(few.known(jobs), 4U);
}

TEST(EndedJobs, RanUntilItWasNoticedThatTheirSupervisorWasKilled) {
  world::World world(Order::Learned);
  world.act({.kind = world::Act::Kind::Submit, .gpus = 1});
  ASSERT_EQ(world.jobs(Status::Running).size(), 1U);
  const JobId id = world.jobs(Status::Running).front()->id;
  world.pass(10min);
  world.tell(event::AttemptEnded{id, 1, Outcome{.reason = EndReason::SupervisorDied}});
  const Job& job = *world.state().find(id);
  ASSERT_EQ(status_of(job), Status::Lost);
  EXPECT_EQ(run_time_of(job, world.now().mono), 10min);
}

TEST(EndedJobs, AreNotQueuedAgainWhereTheyRunOnUnderAnotherGflowd) {
  world::World world(Order::Learned);
  world.act({.kind = world::Act::Kind::Submit, .gpus = 1, .retries = 1});
  ASSERT_EQ(world.jobs(Status::Running).size(), 1U);
  const JobId id = world.jobs(Status::Running).front()->id;
  ASSERT_TRUE(world.state().find(id)->spec.requeue);
  world.tell(event::AttemptEnded{
      id,
      1,
      Outcome{.reason = EndReason::SupervisorDied, .message = kept<Kept::RunsElsewhere>(4242)}});
  EXPECT_EQ(status_of(*world.state().find(id)), Status::Lost);
}

}  // namespace
}  // namespace gflow::engine
