// SPDX-License-Identifier: Apache-2.0
// The virtual clock: every job ends once, has done its work, and nothing is given out twice.
#include <cstdint>

#include "lab/simulation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lab/replay.h"
#include "lab/rng.h"

namespace gflow::lab {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

Trace random_trace(std::uint64_t seed, std::uint32_t jobs) {
  Rng rng(seed);
  Trace trace;
  milliseconds at{0};
  for (std::uint32_t i = 0; i < jobs; ++i) {
    at += milliseconds(rng.below(600'000));
    TraceJob job;
    job.submitted = at;
    job.run_time = milliseconds(1 + rng.below(7'200'000));
    job.spec.name = fmt::format("job{}", i);
    job.spec.user = {1000 + rng.below(3), fmt::format("u{}", i % 3)};
    job.spec.request.gpus = static_cast<int>(rng.below(9));
    if (rng.below(2) == 0) job.spec.time_limit = std::chrono::seconds(7200);
    trace.jobs.push_back(job);
  }
  return trace;
}

std::string text_of(const std::vector<Life>& lives) {
  std::string text;
  for (const Life& life : lives) {
    text += fmt::format("{} {} {} {} {} {}\n",
                        life.id.value,
                        life.submitted.count(),
                        life.first_start.value_or(-1ms).count(),
                        life.ended.value_or(-1ms).count(),
                        life.starts,
                        life.preemptions);
  }
  return text;
}

class VirtualClock : public testing::TestWithParam<std::uint64_t> {
 protected:
  static Played played(std::uint64_t seed, const std::string& fleet) {
    const auto nodes = read_fleet(fleet);
    EXPECT_TRUE(nodes) << nodes.error().message;
    return play(subject_of(random_trace(seed, 300), *nodes, "random"), {}, "run", {});
  }
};

TEST_P(VirtualClock, EveryJobEndsOnceAndHasDoneItsWork) {
  const Played run = played(GetParam(), "2x8");
  ASSERT_EQ(run.lives.size(), 300U);
  for (const Life& life : run.lives) {
    ASSERT_TRUE(life.ended) << life.trouble;
    ASSERT_TRUE(life.first_start);
    EXPECT_GE(*life.first_start, life.submitted);
    EXPECT_GE(*life.ended, *life.first_start + life.work);
    EXPECT_EQ(life.done, life.work);
    EXPECT_EQ(life.starts, 1 + life.preemptions);
  }
}

TEST_P(VirtualClock, WhatIsInUseIsWhatJobsUse) {
  const Played run = played(GetParam(), "2x8");
  std::int64_t by_moments = 0;
  for (std::size_t i = 0; i + 1 < run.moments.size(); ++i) {
    const Moment& moment = run.moments[i];
    EXPECT_GE(moment.parts_used, 0);
    EXPECT_LE(moment.parts_used, std::int64_t{run.gpus} * Share::kWholeParts);
    by_moments += moment.parts_used * (run.moments[i + 1].at - moment.at).count();
  }
  EXPECT_EQ(run.moments.back().parts_used, 0);
  std::int64_t by_lives = 0;
  for (const Life& life : run.lives) {
    if (life.preemptions == 0) by_lives += life.parts * life.done.count();
  }
  EXPECT_GE(by_moments, by_lives);
  if (figures_of(run).preemptions == 0) {
    EXPECT_EQ(by_moments, by_lives);
  }
}

TEST_P(VirtualClock, TheSameCallsGiveTheSameLives) {
  EXPECT_EQ(text_of(played(GetParam(), "2x8").lives), text_of(played(GetParam(), "2x8").lives));
}

INSTANTIATE_TEST_SUITE_P(Seeds, VirtualClock, testing::Range<std::uint64_t>(1, 9));

TEST(Simulation, StopsAJobAtItsTimeLimit) {
  Trace trace = random_trace(1, 1);
  trace.jobs[0].spec.request.gpus = 1;
  trace.jobs[0].run_time = 3h;
  trace.jobs[0].spec.time_limit = 1h;
  const Played run = play(subject_of(trace, *read_fleet("1x8"), "one"), {}, "run", {});
  EXPECT_EQ(run.lives[0].done, milliseconds(1h));
  EXPECT_EQ(run.lives[0].ended, run.lives[0].submitted + 1h);
}

TEST(Simulation, SaysWhyAJobNeverStarts) {
  Trace trace = random_trace(1, 2);
  trace.jobs[0].spec.request.gpus = 4;
  trace.jobs[1].spec.request.gpus = 1;
  Subject subject = subject_of(trace, *read_fleet("1x2"), "too large");
  subject.submissions[0].spec.request.gpus = 4;
  subject.submissions[0].spec.request.nodes = 1;
  const Played run = play(subject, {}, "run", {});
  EXPECT_FALSE(run.lives[0].ended);
  EXPECT_NE(run.lives[0].trouble, "");
  EXPECT_TRUE(run.lives[1].ended);
  EXPECT_EQ(figures_of(run).never, 1);
}

TEST(WhatIf, MoreMachinesMakeForShorterWaits) {
  const Subject subject = subject_of(random_trace(5, 300), *read_fleet("1x8"), "random");
  WhatIf what_if;
  what_if.add_nodes = {"sim:8xH100"};
  const auto other = changed(subject, what_if);
  ASSERT_TRUE(other) << other.error().message;
  const Figures before = figures_of(play(subject, {}, "as it is", {}));
  const Figures after = figures_of(play(*other, {}, what_if.text(), {}));
  EXPECT_LT(after.mean_wait, before.mean_wait);
  EXPECT_EQ(after.ended, before.ended);
}

TEST(WhatIf, RefusesWhatIsNotThere) {
  const Subject subject = subject_of(random_trace(5, 3), *read_fleet("2x8"), "random");
  WhatIf what_if;
  what_if.remove_nodes = {"node3"};
  EXPECT_EQ(changed(subject, what_if).error().message,
            "there is no node 'node3' (is it 'node1'?); there are: node1, node2");
  what_if.remove_nodes = {"node2"};
  EXPECT_EQ(changed(subject, what_if)->fleet.size(), 1U);
  what_if.settings = {{"backfill_patienc", "1h"}};
  EXPECT_NE(changed(subject, what_if).error().message.find("'scheduler.backfill_patience'"),
            std::string::npos);
}

}  // namespace
}  // namespace gflow::lab
