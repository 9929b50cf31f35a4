// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/submit/request.h"

/// What gbatch --dry-run says of where a job would run.
namespace gflow::cli {
namespace {

/// Two GPUs of a node of eight.
api::GpuSet pair_of(int first, std::string because) {
  return {.gpus = {first, first + 1}, .links_percent = 100, .because = std::move(because)};
}

api::MachineView eight_gpus(std::initializer_list<const char*> nodes) {
  api::MachineView machine;
  for (const char* name : nodes) {
    machine.nodes.emplace_back().name = name;
    for (int gpu = 0; gpu < 8; ++gpu) {
      machine.nodes.back().devices.emplace_back().device.index = gpu;
    }
  }
  return machine;
}

std::string said(const api::PlacementView& view, const api::MachineView& machine) {
  return placement_text(view, machine, DryRun{}, Clocks{});
}

/// What is told in the same words is one line: the very same candidate three times is no choice.
TEST(PlacementText, NamesEqualSetsOnce) {
  api::PlacementView view{.nodes = 1, .fits = true, .ranked = {{.node = "n0"}}};
  view.ranked.front().best = pair_of(0, "one switch");
  view.ranked.front().others = {pair_of(2, "one switch"), pair_of(4, "one switch")};
  EXPECT_EQ(said(view, eight_gpus({"n0"})),
            "It would start now:\n"
            "       GPU 0,1\n"
            "       links 100 of 100: one switch\n"
            "       6 of 8 GPUs stay free\n"
            "   or  GPU 2,3 or GPU 4,5\n"
            "       equally good\n");
  view.ranked.front().others.back().because = "two switches";
  EXPECT_EQ(said(view, eight_gpus({"n0"})),
            "It would start now:\n"
            "       GPU 0,1\n"
            "       links 100 of 100: one switch\n"
            "       6 of 8 GPUs stay free\n"
            "   or  GPU 2,3\n"
            "       equally good\n"
            "   or  GPU 4,5\n"
            "       links 100 of 100: two switches\n"
            "       6 of 8 GPUs stay free\n");
}

/// Of nodes the policy may like one better for what these words do not tell.
TEST(PlacementText, TellsWhetherNodesAlikeAreEquallyGood) {
  api::PlacementView view{.nodes = 1, .fits = true};
  for (const auto& [name, score] : {std::pair{"n0", 9}, std::pair{"n1", 9}, std::pair{"n2", 4}}) {
    view.ranked.push_back({.node = name, .best = pair_of(0, ""), .score = score});
  }
  EXPECT_EQ(said(view, eight_gpus({"n0", "n1", "n2"})),
            "It would start now:\n"
            "       node n0, GPU 0,1\n"
            "       6 of 8 GPUs stay free\n"
            "   or  node n1, GPU 0,1\n"
            "       equally good\n"
            "   or  node n2, GPU 0,1\n"
            "       the same, but ranked lower by the policy: -v shows the scores\n");
}

/// All that wait are no answer to how long it takes: those behind it do not count.
TEST(PlacementText, SaysHowManyAreAheadOfOneThatWouldWait) {
  api::PlacementView view{.nodes = 1, .fits = false};
  api::MachineView machine = eight_gpus({"n0"});
  machine.queued = 12;
  const auto last_line = [&] {
    const std::string text = said(view, machine);
    return text.substr(text.rfind('\n', text.size() - 2) + 1);
  };
  EXPECT_EQ(last_line(), "12 jobs are already waiting: those ahead of it start first.\n");
  view.jobs_ahead = 3;
  EXPECT_EQ(last_line(), "3 waiting jobs are ahead of it.\n");
  view.jobs_ahead = 1;
  EXPECT_EQ(last_line(), "1 waiting job is ahead of it.\n");
  view.jobs_ahead = 0;
  EXPECT_EQ(last_line(), "No waiting job is ahead of it.\n");
}

TEST(PlacementText, SaysWhetherOneThatHasRoomMayPassThoseThatWait) {
  api::PlacementView view{.nodes = 1, .fits = true};
  view.ranked = {{.node = "n0", .best = {.gpus = {0}}}};
  api::MachineView machine = eight_gpus({"n0"});
  machine.queued = 2;
  const auto starts_with = [&](const std::string& text) {
    return said(view, machine).starts_with(text) ? "" : said(view, machine);
  };
  EXPECT_EQ(starts_with("There is room now:\n"), "");
  EXPECT_NE(said(view, machine).find("2 jobs are already waiting"), std::string::npos);
  view.expected_start = {WallTime{}, api::StartBy::RunTimes};
  view.jobs_ahead = 2;
  EXPECT_EQ(starts_with("It would start now:\n"), "");
  EXPECT_EQ(said(view, machine).find("ahead"), std::string::npos) << said(view, machine);
  view.expected_start->at = WallTime(std::chrono::hours(48));
  EXPECT_EQ(starts_with("There is room now:\n"), "");
  EXPECT_NE(said(view, machine).find("Expected start: "), std::string::npos);
  EXPECT_NE(said(view, machine).find("2 waiting jobs are ahead of it."), std::string::npos);
}

/// A job over two nodes has both: neither is in place of the other.
TEST(PlacementText, NamesEachNodeOfAJobOverSeveral) {
  api::PlacementView view{.nodes = 2, .fits = true};
  for (const char* name : {"n0", "n1"}) {
    view.ranked.push_back({.node = name, .best = pair_of(0, "")});
  }
  EXPECT_EQ(said(view, eight_gpus({"n0", "n1"})),
            "It would start now:\n"
            "       node n0, GPU 0,1\n"
            "       6 of 8 GPUs stay free\n"
            "       node n1, GPU 0,1\n"
            "       6 of 8 GPUs stay free\n");
}

}  // namespace
}  // namespace gflow::cli
