// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace gflow::engine
