// SPDX-License-Identifier: Apache-2.0
#include "cli/control/defrag_text.h"

#include <gtest/gtest.h>

namespace gflow::cli {
namespace {

using std::chrono::seconds;

DefragNames named(std::initializer_list<std::pair<std::uint64_t, int>> gpus_of) {
  DefragNames names;
  for (const auto& [id, gpus] : gpus_of) {
    api::JobView job;
    job.id = JobId(id);
    job.spec.request.gpus = gpus;
    names.jobs.emplace(job.id, job);
  }
  return names;
}

DefragMove move_of(std::uint64_t job, std::vector<int> from, std::vector<int> to) {
  return {.job = JobId(job),
          .from = {{"n1", std::move(from), {}}},
          .to = {{"n2", std::move(to), {}}},
          .lost_time = seconds(720)};
}

TEST(DefragText, SaysWhichMovesAndWhatToDo) {
  const DefragPlan plan{.job = JobId(12),
                        .outcome = DefragOutcome::Moves,
                        .moves = {move_of(3, {0, 1}, {6, 7})},
                        .to = {{"n1", {0, 1, 2, 3}, {}}}};
  const std::string advice =
      "\nNothing was changed.\n'gctl defrag --apply 12' does it: job 12 gets a priority above "
      "those "
      "that move, and they stop, are queued again behind it and start where there is room.\n";
  DefragNames names = named({{12, 4}, {3, 2}});
  EXPECT_EQ(
      defrag_text({{plan}}, names),
      "job 12 (4 GPUs) would start: move job 3 from GPU 0,1 to GPU 6,7 (requeue, loses 12m of "
      "run time)\n" +
          advice);
  names.has_several_nodes = true;
  DefragPlan two = plan;
  two.moves.push_back(move_of(5, {2}, {3}));
  EXPECT_EQ(defrag_text({{two, {.job = JobId(14), .outcome = DefragOutcome::Moves}}}, names),
            "job 12 (4 GPUs) would start:\n"
            "  move job 3 from GPU n1:0,1 to GPU n2:6,7 (requeue, loses 12m of run time)\n"
            "  move job 5 from GPU n1:2 to GPU n2:3 (requeue, loses 12m of run time)\n"
            "job 14 would start once the jobs above have\n" +
                advice);
  EXPECT_EQ(why_not_applied(two, names), "");
  EXPECT_EQ(applied_text(two, 11, names),
            "job 12 (4 GPUs) has priority 11 now and starts when these have stopped, unless one "
            "ahead of it takes the room; they start again where there is room:\n"
            "  job 3 on GPU n1:0,1 (loses 12m of run time)\n"
            "  job 5 on GPU n1:2 (loses 12m of run time)\n");
  EXPECT_EQ(why_not_applied({.job = JobId(14), .outcome = DefragOutcome::Moves}, names),
            "job 14 would start once those ahead of it have");
}

TEST(DefragText, NamesThePodsOfAClusterAndSaysWhoMovesThem) {
  DefragNames names = named({{12, 4}, {3, 2}, {9, 1}});
  names.is_cluster = names.has_several_nodes = true;
  for (auto& [id, job] : names.jobs) {
    job.spec.user.name = "lab";
    job.spec.name = id == JobId(12) ? "large" : "web\n";
  }
  DefragPlan plan{.job = JobId(12),
                  .outcome = DefragOutcome::Moves,
                  .moves = {move_of(3, {0, 1}, {6, 7})},
                  .is_behind = true,
                  .behind = JobId(9)};
  const std::string told =
      defrag_text({{plan, {.job = JobId(9), .outcome = DefragOutcome::NothingMovable}}}, names);
  EXPECT_EQ(
      told.substr(0, told.find("\nNothing")),
      "pod lab/large (4 GPUs) would have room, and start unless that delays pod lab/web\\n, "
      "which is ahead of it: move pod lab/web\\n from GPU n1:0,1 to GPU n2:6,7 (made anew, "
      "loses 12m of run time)\n"
      "pod lab/web\\n (1 GPU): no move helps: none of the jobs that run there may be moved\n");
  EXPECT_NE(told.find("what made it makes it anew"), std::string::npos);
  EXPECT_EQ(told.find("gctl defrag --apply"), std::string::npos) << "one ahead keeps its place";
  plan.is_behind = false;
  plan.together = {{JobId(9)}};
  EXPECT_EQ(
      defrag_text({{plan}}, names),
      "pod lab/large (4 GPUs) and 1 that starts together with it would start: move pod lab/web\\n "
      "from GPU n1:0,1 to GPU n2:6,7 (made anew, loses 12m of run time)\n\nNothing was changed.\n"
      "'gctl defrag --apply lab/large' does it: those that move are evicted, as far as their "
      "disruption budgets let them be, and made anew by what made them; they wait behind the one "
      "that starts, for which their room is kept.\n");
  EXPECT_EQ(
      applied_text(plan, std::nullopt, names),
      "room is being made for pod lab/large (4 GPUs) and 1 that starts together with it: these are "
      "evicted, made anew, and wait behind it:\n"
      "  pod lab/web\\n on GPU n1:0,1 (loses 12m of run time)\n");
}

/// Who is not shown them is told how many they are, and not to do what nobody knows the effect of.
TEST(DefragText, NamesNoJobThatIsNotShown) {
  const DefragPlan plan{
      .job = JobId(12), .outcome = DefragOutcome::Moves, .other_moves = 2, .is_behind = true};
  EXPECT_EQ(defrag_text({{plan}}, named({{12, 4}})),
            "job 12 (4 GPUs) would have room, and start unless that delays one ahead of it: move 2 "
            "jobs of others\n\nNothing was changed.\n");
  DefragPlan known = plan;
  known.behind = JobId(9);
  known.other_moves = 1;
  EXPECT_EQ(why_not_applied(known, {}),
            "job 12: jobs of others would move, which an operator may ask for");
  DefragPlan behind = known;
  behind.moves = {move_of(3, {0}, {1})};
  behind.other_moves = 0;
  EXPECT_EQ(why_not_applied(behind, {}),
            "job 12 might not start: a job ahead of it keeps its place");
  EXPECT_EQ(
      defrag_text({{known}}, named({{12, 4}})),
      "job 12 (4 GPUs) would have room, and start unless that delays job 9, which is ahead of "
      "it: move 1 job of others\n\nNothing was changed.\n");
}

TEST(DefragText, SaysWhyNoMoveHelps) {
  const auto line_of = [](DefragOutcome outcome) {
    const std::string text =
        defrag_text({{{.job = JobId(7), .outcome = outcome}}}, named({{7, 1}}));
    const std::string line = text.substr(0, text.find('\n'));
    EXPECT_EQ(why_not_applied({.job = JobId(7), .outcome = outcome}, named({{7, 1}})), line);
    return line;
  };
  EXPECT_EQ(line_of(DefragOutcome::HasRoom),
            "job 7 (1 GPU) has room: 'gjob why 7' tells what else it waits for");
  EXPECT_EQ(line_of(DefragOutcome::WaitsForMore),
            "job 7 (1 GPU) waits for more than room: 'gjob why 7' tells for what");
  EXPECT_EQ(line_of(DefragOutcome::NotEnoughFree),
            "job 7 (1 GPU): no move helps: not enough is free in all");
  EXPECT_EQ(line_of(DefragOutcome::NothingMovable),
            "job 7 (1 GPU): no move helps: none of the jobs that run there may be moved");
  EXPECT_EQ(line_of(DefragOutcome::NoMoveHelps),
            "job 7 (1 GPU): no move helps: those that may be moved cannot make enough room");
  EXPECT_EQ(line_of(DefragOutcome::NotSearched),
            "job 7 (1 GPU): not searched: there was too much to look at");
}

TEST(DefragText, OfAnEmptyQueue) { EXPECT_EQ(defrag_text({}, {}), "no job waits for room\n"); }

}  // namespace
}  // namespace gflow::cli
