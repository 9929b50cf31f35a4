// SPDX-License-Identifier: Apache-2.0
#include "cli/stats/usage_text.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace gflow::cli {
namespace {

using namespace std::chrono_literals;

api::UsageView usage(std::string name, std::uint64_t ended, double gpu_hours) {
  api::UsageView view;
  view.name = std::move(name);
  for (std::uint64_t job = 0; job < ended; ++job) view.states.add(Status::Finished);
  view.gpu_seconds = gpu_hours * 3600;
  return view;
}

api::StatisticsView a_month() {
  api::StatisticsView view;
  view.since = WallTime(std::chrono::hours(24 * 365));
  view.known_since = *view.since + 24h;
  view.by = "user";
  view.parts = {usage("alice", 1, 0.25), usage("bob", 3, 1200.55), usage("", 0, 0)};
  api::UsageView& bob = view.parts[1];
  for (const Status status : {Status::Failed, Status::Timeout, Status::Lost, Status::Cancelled}) {
    bob.states.add(status);
  }
  bob.states.add(Status::Running);
  bob.states.add(Status::Suspended);
  bob.states.add(Status::Hold);
  bob.gpus_held = 2.5;
  bob.cpu_seconds = 10;
  bob.waits = {.count = 7, .median = 90s, .p90 = 3h + 12min + 5s};
  bob.run_times = {.count = 7, .median = 45s, .p90 = 52h};
  view.total = usage("", 4, 1200.8);
  return view;
}

TEST(UsageText, InAPipeIsEveryColumnAndNoHeading) {
  EXPECT_EQ(usage_text(a_month(), {}),
            "USER     ENDED    FAILED    RUNNING    WAITING    GPUS    GPU-HOURS    CPU-HOURS    "
            "WAIT     WAIT-P90    RUN    RUN-P90\n"
            "bob      7        3         2          1          2.5     1200.5       <0.01        "
            "1m30s    3h12m       45s    2d4h\n"
            "alice    1        0         0          0          0       0.25         0            "
            "-        -           -      -\n"
            "-        0        0         0          0          0       0            0            "
            "-        -           -      -\n");
  api::StatisticsView all = a_month();
  all.parts.clear();
  all.by = "none";
  const std::string text = usage_text(all, {});
  EXPECT_TRUE(text.contains("\nall ") && text.ends_with("-\n")) << text;
}

TEST(UsageText, FitsTheScreen) {
  for (const std::size_t columns : {40U, 60U, 80U, 120U, 200U}) {
    api::StatisticsView month = a_month();
    month.parts[0].name = "a user of this name is not usual at all";
    const std::string text = usage_text(month, {.columns = columns});
    for (const std::string_view line : split(text, '\n')) {
      EXPECT_LE(display_width(line), columns) << line;
    }
    EXPECT_TRUE(text.starts_with("Jobs that ended since 1971-01-01")) << text;
    EXPECT_TRUE(text.contains("GPU-HOURS") && text.contains("ENDED")) << text;
  }
}

TEST(UsageText, ShowsWhoUsedHowMuchOnANarrowScreen) {
  api::StatisticsView month = a_month();
  month.parts[0].name = "a user of this name is not usual at all";
  const std::string text = usage_text(month, {.columns = 30});
  EXPECT_TRUE(
      text.ends_with("\nUSER          ENDED  GPU-HOURS\n"
                     "bob               7     1200.5\n"
                     "a user…t all      1       0.25\n"
                     "(none)            0          0\n"
                     "all               4     1200.8\n"))
      << text;
}

TEST(UsageText, SaysWhoseJobsTheTotalsAreOf) {
  api::StatisticsView month = a_month();
  const UsageViewer viewer{.columns = 200};
  EXPECT_FALSE(usage_text(month, viewer).contains("your own jobs alone"));
  month.others_jobs = "none";
  EXPECT_TRUE(usage_text(month, viewer).contains("\nThese are your own jobs alone")) << "a line";
}

TEST(UsageText, SaysFromWhenOnJobsAreKnown) {
  api::StatisticsView month = a_month();
  const UsageViewer viewer{.columns = 200};
  EXPECT_TRUE(
      usage_text(month, viewer).contains("gflow has forgotten some that ended until 1971-01-02"));
  month.known_since = *month.since - 1h;
  EXPECT_FALSE(usage_text(month, viewer).contains("gflow has forgotten"));
  month.since.reset();
  month.until = WallTime(std::chrono::hours(24 * 400));
  EXPECT_TRUE(usage_text(month, viewer).starts_with("Jobs that ended before 1971-02-05"))
      << usage_text(month, viewer);
}

}  // namespace
}  // namespace gflow::cli
