// SPDX-License-Identifier: Apache-2.0
// Where a job would run, and what would keep it waiting.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/placement_view.h"
#include "server/fake_desk.h"

namespace gflow::server {
namespace {

TEST(Place, SaysWhatKeepsTheJobWaitingWhateverIsFree) {
  FakeDesk desk;
  const JobId held = desk.submit(kAlice, R"("hold":true)");
  const auto place = [&desk](const std::string& more) {
    return desk.ask(kBob, "POST", "/api/v1/place", R"({"request":{"gpus":1})" + more + "}");
  };
  const auto free = api::read_placement(place("").body);
  ASSERT_TRUE(free);
  EXPECT_TRUE(free->fits && free->blockers.empty() && !free->cancelled);
  const std::string on = R"(,"dependencies":{"jobs":[)" + std::to_string(held.value) + "]}";
  const auto view =
      api::read_placement(place(R"(,"hold":true,"begin":"2099-03-01T12:00:00Z")" + on).body);
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->fits);
  ASSERT_EQ(view->blockers.size(), 3U);
  EXPECT_EQ(view->blockers[0].kind, BlockerKind::OnHold);
  EXPECT_EQ(view->blockers[1].jobs, std::vector{held});
  EXPECT_EQ(view->blockers[1].mode, DependencyMode::All);
  EXPECT_EQ(view->blockers[1].end, std::nullopt);
  EXPECT_EQ(view->blockers[2].kind, BlockerKind::BeginTime);
  (void)desk.ask(kAlice, "POST", "/api/v1/jobs/cancel", R"({"jobs":[1]})");
  const auto late = api::read_placement(place(on).body);
  ASSERT_TRUE(late && late->blockers.size() == 1);
  EXPECT_TRUE(late->cancelled && late->blockers[0].never);
  EXPECT_EQ(late->blockers[0].end, Status::Cancelled);
  const Reply nowhere = place(R"(,"dependencies":{"jobs":[99]})");
  EXPECT_EQ(nowhere.status, 404);
  EXPECT_NE(nowhere.body.find("it depends on job 99, which does not exist"), std::string::npos);
}

/// What holders leave free first is for who is ahead, so that when that is says nothing.
TEST(Place, StandsBehindThoseThatItWouldWaitFor) {
  FakeDesk desk;
  const auto asks = [](const std::string& more) { return R"("request":{"gpus":2},)" + more; };
  (void)desk.submit(kAlice, asks(R"("time_limit_seconds":7200)"));
  const JobId waits = desk.submit(kAlice, asks(R"("time_limit_seconds":7200)"));
  const auto place = [&](const std::string& more) {
    return api::read_placement(
        desk.ask(kBob, "POST", "/api/v1/place", "{" + asks(more) + "}").body);
  };
  const auto behind = place(R"("time_limit_seconds":86400)");
  ASSERT_TRUE(behind);
  ASSERT_EQ(behind->blockers.size(), 2U);
  EXPECT_EQ(behind->blockers[0].kind, BlockerKind::Gpus);
  EXPECT_EQ(behind->blockers[1].kind, BlockerKind::Priority);
  EXPECT_EQ(behind->blockers[1].jobs, std::vector{waits});
  EXPECT_EQ(behind->jobs_ahead, 1U);
  (void)desk.submit(kAlice, asks(R"("hold":true)"));
  (void)desk.submit(kAlice, asks(R"("priority":1)"));
  EXPECT_EQ(place(R"("priority":2)")->jobs_ahead, 1U)
      << "what is held, or stands behind it, is not";
  EXPECT_EQ(place(R"("priority":0)")->jobs_ahead, 2U);
  EXPECT_EQ(place(R"("hold":true)")->jobs_ahead, std::nullopt) << "it waits for more than room";
  (void)desk.submit(kAlice, asks(R"("dependencies":{"jobs":[1]})"));
  EXPECT_EQ(place(R"("priority":0)")->jobs_ahead, std::nullopt) << "another one comes, some time";
}

/// Where there is room, but not for who is ahead: only one that is gone by then may have it.
TEST(Place, TellsWhoMayPassThoseAheadOfIt) {
  FakeDesk desk;
  const auto place = [&](const std::string& more) {
    const std::string asked = R"({"request":{"gpus":1},)" + more + "}";
    return api::read_placement(desk.ask(kBob, "POST", "/api/v1/place", asked).body);
  };
  (void)desk.submit(kAlice, R"("request":{"gpus":1},"time_limit_seconds":7200)");
  EXPECT_EQ(place(R"("time_limit_seconds":60)")->expected_start, std::nullopt) << "nobody waits";
  (void)desk.submit(kAlice, R"("request":{"gpus":2},"time_limit_seconds":7200)");
  const auto passes = place(R"("priority":1,"time_limit_seconds":3600)");
  ASSERT_TRUE(passes && passes->fits && passes->expected_start) << api::write(*passes);
  EXPECT_LE(passes->expected_start->at, desk.service.now().wall);
  const auto waits = place(R"("priority":1,"time_limit_seconds":86400)");
  ASSERT_TRUE(waits && waits->fits && waits->expected_start) << api::write(*waits);
  EXPECT_GT(waits->expected_start->at, desk.service.now().wall);
  EXPECT_EQ(waits->jobs_ahead, 1U);
  EXPECT_TRUE(waits->blockers.empty());
}

/// Of a group those that run count, and those that stand in the queue before them.
TEST(Place, KnowsHowManyOfAGroupMayRun) {
  FakeDesk desk;
  const std::string group = R"("group":"g","max_concurrent":3)";
  const auto place = [&](const std::string& more) {
    const std::string body = R"({"request":{"gpus":0},"jobs":5,)" + group + more + "}";
    return api::read_placement(desk.ask(kAlice, "POST", "/api/v1/place", body).body);
  };
  const auto empty = place("");
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->starts.size(), 3U);
  ASSERT_TRUE(empty->limit);
  EXPECT_EQ(empty->limit->kind, BlockerKind::GroupLimit);
  (void)desk.submit(kAlice, group);
  (void)desk.submit(kAlice, group + R"(,"hold":true)");
  const auto one = place("");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->starts.size(), 2U);
  EXPECT_TRUE(one->limit && one->blockers.empty());
  for (int more = 0; more < 3; ++more) (void)desk.submit(kAlice, group);
  const auto full = place("");
  ASSERT_TRUE(full && full->blockers.size() == 1);
  EXPECT_TRUE(full->starts.empty());
  EXPECT_EQ(full->blockers[0].kind, BlockerKind::GroupLimit);
  EXPECT_EQ(full->blockers[0].holders.size(), 3U);
}

/// A number alone does not say until when it is.
TEST(Place, SaysWhoRunsOfThoseThatAreWaitedFor) {
  FakeDesk desk;
  const JobId runs = desk.submit(kAlice, R"("request":{"gpus":1},"time_limit_seconds":7200)");
  const JobId held = desk.submit(kAlice, R"("hold":true)");
  const std::string on = fmt::format("[{},{}]", runs.value, held.value);
  const auto view = api::read_placement(
      desk.ask(
              kBob, "POST", "/api/v1/place", R"({"request":{},"dependencies":{"jobs":)" + on + "}}")
          .body);
  ASSERT_TRUE(view && view->blockers.size() == 1);
  EXPECT_EQ(view->blockers[0].jobs, (std::vector{runs, held}));
  ASSERT_EQ(view->blockers[0].holders.size(), 1U);
  const blocker::Holder& holder = view->blockers[0].holders[0];
  EXPECT_EQ(holder.job, runs);
  EXPECT_EQ(holder.user, "alice");
  EXPECT_EQ(holder.gpus, std::vector{0});
  EXPECT_TRUE(holder.ends);
}

}  // namespace
}  // namespace gflow::server
