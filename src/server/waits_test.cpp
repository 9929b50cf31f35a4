// SPDX-License-Identifier: Apache-2.0
#include "server/waits.h"

#include <gtest/gtest.h>

namespace gflow::server {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;
using std::chrono::milliseconds;

const WallTime kNoon{std::chrono::milliseconds(1'772'366'400'000)};

/// Submitted when gflow had seen 1000 s pass, 500 s of them before this boot; started 90 s later
/// and ended 60 s after that, with the clock set in between.
milliseconds waited_in(const std::string& boot, milliseconds set) {
  engine::State state(engine::Policy{}, "this");
  state.set_lived(500s, MonoTime{});
  Job job;
  job.submitted = kNoon;
  job.lived = 1000s;
  Ended ended;
  ended.lived = 1150s;
  ended.outcome.run_time = 60s;
  ended.attempt =
      Attempt{.number = 1, .started = kNoon + 90s + set, .started_mono = MonoTime(590s)};
  ended.attempt->boot_id = boot;
  job.state = ended;
  return waited(state, job, *ended.attempt);
}

TEST(Waited, IsTheTimeThatPassedHoweverTheClockIsSet) {
  for (const milliseconds set :
       {milliseconds(0), milliseconds(days(10)), milliseconds(-days(10))}) {
    EXPECT_EQ(waited_in("this", set), 90s) << set.count();
  }
}

TEST(Waited, InAnEarlierBootIsWhatTheCalendarSaysAsFarAsItCanBe) {
  EXPECT_EQ(waited_in("earlier", 0s), 90s);
  EXPECT_EQ(waited_in("earlier", -30s), 60s);
  EXPECT_EQ(waited_in("earlier", days(10)), 90s) << "it ran for the rest until its end";
  EXPECT_EQ(waited_in("earlier", -days(10)), 0s);
}

}  // namespace
}  // namespace gflow::server
