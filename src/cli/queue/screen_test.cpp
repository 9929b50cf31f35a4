// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/screen.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "api/expected_start.h"
#include "api/job_page.h"
#include "api/json.h"
#include "base/text.h"
#include "cli/queue/brief.h"
#include "cli/queue/fold.h"
#include "cli/queue/screen_stream.h"
#include "command/golden_test.h"
#include "core/gpu_request.h"

namespace gflow::cli {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const WallTime kNow = *parse_rfc3339("2026-03-01T12:00:05Z");

api::JobView screen_job(std::uint64_t id, std::string name, std::string user, Status status) {
  api::JobView view;
  view.id = JobId(id);
  view.spec.name = std::move(name);
  view.spec.user.name = std::move(user);
  view.status = status;
  return view;
}

api::JobView on_gpus(api::JobView view, std::string_view gpus, std::string list, seconds time) {
  apply(*parse_gpu_request(gpus), view.spec.request);
  view.node_list = std::move(list);
  view.run_time = time;
  view.started = kNow - time;
  return view;
}

/// Waits for GPUs that are busy; `ends`: when those who have them have to end.
api::JobView short_of_gpus(api::JobView view, int need, int available, std::optional<hours> ends) {
  view.spec.request.gpus = need;
  api::BlockerView blocker;
  blocker.kind = BlockerKind::Gpus;
  blocker.code = "Resources";
  blocker.need = need;
  blocker.available = available;
  blocker.holders.push_back({JobId(1), "alice", {0, 1, 2, 3}, {}});
  if (ends) blocker.holders.front().ends = kNow + *ends;
  view.blockers.push_back(blocker);
  return view;
}

api::JobView behind(api::JobView view, std::uint64_t ahead, std::optional<WallTime> at) {
  api::BlockerView blocker;
  blocker.kind = BlockerKind::Priority;
  blocker.code = "Priority";
  blocker.jobs = {JobId(ahead)};
  blocker.at = at;
  view.blockers.push_back(blocker);
  return view;
}

/// Two people's jobs of every kind, an array, a name that is too long for most screens.
api::JobPage busy_page() {
  api::JobPage page;
  auto& jobs = page.jobs;
  jobs.push_back(on_gpus(
      screen_job(1, "llama-ft", "alice", Status::Running), "4", "0,1,2,3", hours(3) + minutes(12)));
  jobs.back().spec.time_limit = hours(8);
  jobs.push_back(
      on_gpus(screen_job(2, "一个很长的中文名字用来测试宽度是否正确", "bob", Status::Running),
              "8G,0.5",
              "4",
              seconds(41)));
  jobs.push_back(
      short_of_gpus(screen_job(3, "ddp-pretrain", "bob", Status::Queued), 8, 4, hours(5)));
  jobs.back().spec.time_limit = hours(12);
  for (std::uint64_t task = 3; task <= 20; ++task) {
    jobs.push_back(screen_job(task + 1, fmt::format("eval_{}", task), "alice", Status::Queued));
    jobs.back().spec.group = "group-1a2b";
    jobs.back() = behind(short_of_gpus(jobs.back(), 1, 0, {}), 3, kNow + hours(2));
  }
  jobs.push_back(screen_job(22,
                            "a-name-as-long-as-people-make-them-" + std::string(80, 'x') + "-v2",
                            "alice",
                            Status::Hold));
  jobs.back().blockers.push_back({.kind = BlockerKind::OnHold, .code = "Held"});
  jobs.push_back(screen_job(23, "nightly", "alice", Status::Queued));
  jobs.back().blockers.push_back(
      {.kind = BlockerKind::BeginTime, .code = "BeginTime", .at = kNow + hours(20)});
  jobs.push_back(screen_job(24, "report", "bob", Status::Queued));
  jobs.back().spec.priority = 50;
  jobs.back().blockers.push_back(
      {.kind = BlockerKind::Dependency, .code = "Dependency", .jobs = {JobId(1), JobId(2)}});
  jobs.push_back(screen_job(25, "first-try", "bob", Status::Failed));
  jobs.back().outcome = Outcome{};
  jobs.back().outcome->exit_code = 1;
  jobs.back().ended = kNow - hours(1);
  return page;
}

/// The same as the scheduler considers them.
ListedJobs busy() {
  ListedJobs listed{busy_page()};
  listed.queue.jobs = {{JobId(3), api::ExpectedStart{kNow + hours(2), api::StartBy::RunTimes}}};
  for (std::uint64_t id = 4; id <= 21; ++id) listed.queue.jobs.push_back({JobId(id), {}});
  return listed;
}

Viewer viewer(std::size_t columns, std::size_t rows = 24) {
  return {"alice", kNow, Zone(seconds(0)), columns, rows};
}

/// Without what stands between them.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view line : split(text, '\n')) {
    for (const std::string_view word : split(line, ' ')) {
      if (!word.empty()) words.emplace_back(word);
    }
  }
  return words;
}

TEST(QueueScreen, IsAsReviewed) {
  for (const std::size_t columns : {40U, 80U, 120U, 200U}) {
    expect_golden(fmt::format("gqueue-{}.screen", columns),
                  queue_screen({}, busy(), viewer(columns), Painter()));
  }
}

/// What is asked of a daemon is all that a screen shows.
TEST(QueueScreen, LooksAtNoMoreThanItNeeds) {
  ASSERT_TRUE(api::check_job_fields(screen_needs()));
  ListedJobs asked = busy();
  api::JobPageWriter page(1 << 20, screen_needs());
  for (const api::JobView& job : asked.page.jobs) ASSERT_TRUE(page.add(job));
  asked.page = *api::read_job_page(page.finish(0));
  Listing tree;
  tree.layout = Layout::Tree;
  Listing grouped;
  grouped.layout = Layout::Grouped;
  for (const Listing& listing : {Listing{}, tree, grouped}) {
    EXPECT_EQ(queue_screen(listing, asked, viewer(200), Painter()),
              queue_screen(listing, busy(), viewer(200), Painter()));
  }
}

TEST(QueueScreen, FitsEveryWidth) {
  Listing tree;
  tree.layout = Layout::Tree;
  Listing grouped;
  grouped.layout = Layout::Grouped;
  for (std::size_t columns = 1; columns <= 220; columns += columns < 48 ? 1 : 13) {
    for (const Listing& listing : {Listing{}, tree, grouped}) {
      if (listing.layout == Layout::Grouped && columns < 20) continue;  // its headings
      const std::string text = queue_screen(listing, busy(), viewer(columns), Painter());
      for (const std::string_view line : split(text, '\n')) {
        EXPECT_LE(display_width(line), columns) << line;
      }
    }
  }
}

TEST(QueueScreen, ShowsUsersWhereThereAreSeveral) {
  api::JobPage page = busy_page();
  EXPECT_NE(queue_screen({}, {page}, viewer(80), Painter()).find("USER"), std::string::npos);
  EXPECT_NE(queue_screen({}, {page}, viewer(80), Painter(true)).find("\x1b[1mllama-ft"),
            std::string::npos)
      << "one's own stand out";
  std::erase_if(page.jobs, [](const api::JobView& job) { return job.spec.user.name == "bob"; });
  EXPECT_EQ(queue_screen({}, {page}, viewer(80), Painter()).find("USER"), std::string::npos);
  EXPECT_EQ(queue_screen({}, {page}, viewer(80), Painter(true)).find("\x1b[1mllama-ft"),
            std::string::npos);
}

/// The ids of the rows, as they stand.
std::string ids_on(const std::string& text) {
  std::string ids;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) break;  // what follows are counts
    const std::string_view id = line.substr(0, line.find(' '));
    if (id != "JOBID") ids.append(ids.empty() ? "" : " ").append(id);
  }
  return ids;
}

/// Those that wait stand as the scheduler considers them, behind what runs, and before those that
/// are in no queue yet.
TEST(QueueScreen, HasTheOrderOfTheQueue) {
  ListedJobs listed;
  for (const std::uint64_t id : {1U, 2U, 3U, 4U, 5U, 6U}) {
    listed.page.jobs.push_back(
        screen_job(id, "train", "alice", id == 4 ? Status::Running : Status::Queued));
  }
  listed.page.jobs[2].spec.priority = 20;  // waits for another one: it is in no queue
  EXPECT_EQ(ids_on(queue_screen({}, listed, viewer(80), Painter())), "4 3 1 2 5 6");
  const api::ExpectedStart soon{kNow + minutes(40), api::StartBy::RunTimes};
  listed.queue.jobs = {{JobId(5), soon}, {JobId(1), {}}, {JobId(9), {}}, {JobId(6), {}}};
  const std::string text = queue_screen({}, listed, viewer(80), Painter());
  EXPECT_EQ(ids_on(text), "4 5 1 6 3 2");
  EXPECT_EQ(text.find("~12:40"), text.rfind("~12:40")) << text;
  EXPECT_LT(text.find("\n5 "), text.find("~12:40")) << text;
  EXPECT_LT(text.find("~12:40"), text.find("\n1 ")) << text;
}

/// Others may go first though the limits of those that run end before: the scheduler knows.
TEST(QueueScreen, ShowsWhatTheSchedulerExpects) {
  ListedJobs listed = busy();
  listed.queue.jobs[0] = {JobId(3), api::ExpectedStart{kNow + hours(1), api::StartBy::RunTimes}};
  const std::string text = queue_screen({}, listed, viewer(80), Painter());
  EXPECT_NE(text.find("~13:00"), std::string::npos) << text;
  EXPECT_EQ(text.find("~14:00"), std::string::npos) << text;
}

/// An array stands in one row of a tree, too, and what depends on its tasks hangs under that once.
TEST(QueueScreen, FoldsArraysInATree) {
  ListedJobs listed{busy_page()};
  listed.page.jobs.push_back(screen_job(26, "merge", "alice", Status::Queued));
  for (std::uint64_t task = 4; task <= 21; ++task) {
    listed.page.jobs.back().spec.dependencies.jobs.emplace_back(task);
  }
  Listing tree;
  tree.layout = Layout::Tree;
  const std::string text = queue_screen(tree, listed, viewer(80), Painter());
  EXPECT_NE(text.find("\n4-21 "), std::string::npos) << text;
  EXPECT_NE(text.find("\n╰─26 "), std::string::npos) << text;
  EXPECT_EQ(text.find("see job"), std::string::npos) << text;
  tree.folded = false;
  const std::string each = queue_screen(tree, listed, viewer(80), Painter());
  EXPECT_NE(each.find("╰─→ see"), std::string::npos) << each;
}

TEST(QueueScreen, KeepsAnOrderAndColumnsThatWereAskedFor) {
  Listing listing{*choose_fields("JOBID,ST")};
  listing.sorted = true;
  listing.folded = false;
  api::JobPage page = busy_page();
  std::ranges::reverse(page.jobs);
  const std::string text = queue_screen(listing, {page}, viewer(80), Painter());
  EXPECT_TRUE(text.starts_with("JOBID  ST\n25     F\n24     PD\n23     PD\n22     H\n21     PD\n"))
      << text;
}

/// `gqueue -n 3` lists three of however many there are, and counts them all.
TEST(QueueScreen, CountsAllWhereItListsSome) {
  ListedJobs listed = busy();
  listed.page.jobs.resize(3);
  listed.counts = counts_of(busy_page(), "alice");
  EXPECT_TRUE(
      queue_screen({}, listed, viewer(120), Painter())
          .ends_with("\n3 of 25 jobs listed; in all: 2 running, 21 waiting, 1 held, 1 ended "
                     "(yours: 1 running, 19 waiting, 1 held)\n"));
  EXPECT_TRUE(
      queue_screen({}, listed, viewer(80), Painter())
          .ends_with("\n3 of 25 jobs listed; in all: 2 running, 21 waiting, 1 held, 1 ended\n"));
  EXPECT_TRUE(queue_screen({}, listed, viewer(40), Painter()).ends_with("\n3 of 25 jobs listed\n"));
  listed = busy();
  listed.counts = counts_of(listed.page, "alice");
  EXPECT_EQ(queue_screen({}, listed, viewer(80), Painter()),
            queue_screen({}, busy(), viewer(80), Painter()))
      << "these are all";
}

TEST(WatchScreen, IsAsReviewed) {
  api::JobPage page = busy_page();
  for (std::uint64_t id = 30; id < 60; ++id) {
    page.jobs.push_back(
        short_of_gpus(screen_job(id, fmt::format("job-{}", id), "bob", Status::Queued), 1, 0, {}));
  }
  expect_golden("gqueue-watch-80.screen", watch_screen({}, {page}, viewer(80), {}, Painter()));
  expect_golden("gqueue-watch-40.screen", watch_screen({}, {page}, viewer(40, 12), {}, Painter()));
}

/// It is given as many jobs as a screen has room for, of however many there are.
TEST(WatchScreen, CountsJobsThatItWasNotGiven) {
  ListedJobs listed = busy();
  listed.counts = counts_of(listed.page, "alice");
  EXPECT_EQ(watch_screen({}, listed, viewer(80, 12), {}, Painter()),
            watch_screen({}, busy(), viewer(80, 12), {}, Painter()));
  for (int more = 0; more < 1000; ++more) listed.counts->all.add(Status::Queued);
  const std::string text = watch_screen({}, listed, viewer(80, 8), {}, Painter());
  EXPECT_TRUE(text.starts_with("12:00:05  2 running, 1021 waiting, 1 held, 1 ended")) << text;
  EXPECT_TRUE(text.contains("\n4-21 ")) << text;
  EXPECT_TRUE(text.ends_with("\n... 1004 more jobs\n")) << text;
  EXPECT_TRUE(
      watch_screen({}, listed, viewer(80, 60), {}, Painter()).ends_with("\n... 1000 more jobs\n"));
}

TEST(WatchScreen, KeepsItsHeadAndWhatRunsOnEverySize) {
  api::JobPage page = busy_page();
  for (const std::size_t rows : {1U, 2U, 3U, 4U, 7U, 12U, 24U, 60U}) {
    for (const std::size_t columns : {20U, 40U, 80U, 200U}) {
      const std::string text =
          watch_screen({}, {page}, viewer(columns, rows), {.trouble = "no answer"}, Painter());
      EXPECT_LE(static_cast<std::size_t>(std::ranges::count(text, '\n')), rows) << text;
      EXPECT_TRUE(text.starts_with("12:00:05  ")) << text;
      EXPECT_NE(text.find("no answer"), std::string::npos) << text;
      const std::string_view first = columns < 40 ? "ll…t  " : "llama-ft  ";
      EXPECT_TRUE(rows <= 6 || text.find(first) != std::string::npos) << text;
      for (const std::string_view line : split(text, '\n')) {
        EXPECT_LE(display_width(line), columns) << line;
      }
    }
  }
  EXPECT_EQ(watch_screen({}, {page}, viewer(80, 60), {}, Painter()).find("more"),
            std::string::npos);
}

TEST(WatchScreen, HasAllOfATroubleThatIsLongerThanALine) {
  expect_golden(
      "gqueue-watch-trouble-40.screen",
      watch_screen(
          {},
          busy(),
          viewer(40, 12),
          {.trouble = "no answer from gflowd for 5s; jobs keep running\ngflowd (pid 22480) "
                      "does not answer; it is stopped (T): 'kill -CONT 22480' resumes it"},
          Painter()));
}

TEST(Brief, SaysHowManyGpus) {
  struct Case {
    std::string_view request;
    int nodes;
    std::string_view want;
  };
  const Case cases[] = {{"0", 1, "-"},
                        {"2", 1, "2"},
                        {"2(V100)", 1, "2"},
                        {"4", 2, "8"},
                        {"0.5", 1, "0.5"},
                        {"8G,0.5", 1, "0.5"},
                        {"0.5", 2, "2x0.5"},
                        {"-1", 1, "all"}};
  for (const Case& c : cases) {
    Request request;
    apply(*parse_gpu_request(c.request), request);
    request.nodes = c.nodes;
    EXPECT_EQ(brief_gpus(request), c.want) << c.request;
  }
}

TEST(Brief, SaysWhy) {
  struct Case {
    api::BlockerView blocker;
    std::string_view want;
  };
  const Case cases[] = {
      {{.kind = BlockerKind::Gpus, .code = "Resources", .need = 8, .available = 7},
       "(Resources 7/8)"},
      {{.kind = BlockerKind::GpuShare, .code = "Resources", .need = 5000, .available = 2500},
       "(Resources 0.25/0.5)"},
      {{.kind = BlockerKind::GpuMemory,
        .code = "GpuMemory",
        .need = std::int64_t{20} << 30,
        .available = std::int64_t{8} << 30},
       "(GpuMemory 8G/20G)"},
      {{.kind = BlockerKind::Cpus, .code = "Resources", .need = 8, .available = 2}, "(CPUs 2/8)"},
      {{.kind = BlockerKind::OnHold, .code = "Held", .text = "JobHeldUser"}, "(held)"},
      {{.kind = BlockerKind::Priority, .code = "Priority", .jobs = {JobId(4)}}, "(behind job 4)"},
      {{.kind = BlockerKind::Dependency,
        .code = "Dependency",
        .jobs = {JobId(1), JobId(2), JobId(3), JobId(9)}},
       "(Dependency 1-3,9)"},
      {{.kind = BlockerKind::GroupLimit, .code = "GroupLimit"}, "(GroupLimit)"},
  };
  for (const Case& c : cases) {
    api::JobView job = screen_job(1, "x", "alice", Status::Queued);
    job.blockers = {c.blocker};
    EXPECT_EQ(brief_where_or_why(job), c.want);
  }
  api::JobView stands = screen_job(1, "x", "alice", Status::Suspended);
  stands.node_list = "0,1";
  stands.blockers = {
      {.kind = BlockerKind::Suspended, .code = "Suspended", .text = "Suspended by bob"}};
  EXPECT_EQ(brief_where_or_why(stands), "0,1 (Suspended by bob)");
  stands.spec.request = {.gpus = 2, .share = Share{2500}, .mode = GpuMode::Fraction};
  EXPECT_EQ(brief_where_or_why(stands), "0,1 (0.25, Suspended by bob)");
  api::JobView shares = screen_job(2, "x", "alice", Status::Running);
  shares.node_list = "4";
  shares.spec.request = {.gpus = 1, .mode = GpuMode::TimeSlice};
  EXPECT_EQ(brief_where_or_why(shares), "4 (shared)") << "no whole GPU";
  EXPECT_EQ(brief_gpus(shares.spec.request), "1 shared");
}

/// "job 1..." is another job than 12.
TEST(QueueScreen, CutsNoNumber) {
  ListedJobs listed;
  listed.page.jobs = {
      on_gpus(screen_job(100002, "base", "alice", Status::Running), "1", "0", hours(1)),
      behind(screen_job(100003, "a-long-name-of-one", "bob", Status::Queued), 100002, {}),
      screen_job(100004, "after-many", "bob", Status::Queued)};
  listed.page.jobs[1].spec.request.gpus = 1;
  listed.page.jobs[2].blockers = {{.kind = BlockerKind::Dependency,
                                   .code = "Dependency",
                                   .jobs = {JobId(99001), JobId(100002), JobId(100003)}}};
  for (std::size_t columns = 40; columns <= 120; ++columns) {
    const std::string text = queue_screen({}, listed, viewer(columns), Painter());
    EXPECT_TRUE(text.contains("behind job 100002)") || text.contains("(behind 100002)")) << text;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t digit = rest.find_first_of("0123456789");
      if (digit == std::string_view::npos) break;
      const std::size_t end = std::min(rest.find_first_not_of("0123456789", digit), rest.size());
      EXPECT_FALSE(rest.substr(end).starts_with("…")) << columns << '\n' << text;
      rest.remove_prefix(end);
    }
  }
}

/// gflowd does not tell what others' jobs are called where others_jobs is "usage".
TEST(QueueScreen, HasAMarkForANameThatIsHidden) {
  const ListedJobs listed{
      {{on_gpus(screen_job(1, "", "bob", Status::Running), "1", "0", hours(1))}, {}, {}, 0}};
  const std::string text = queue_screen({}, listed, viewer(80), Painter());
  EXPECT_TRUE(text.contains("\n1      -     bob   R ")) << text;
}

TEST(Fold, JoinsTasksThatWaitForTheSame) {
  const auto folded = [](const std::vector<api::JobView>& jobs) {
    std::vector<const api::JobView*> all;
    for (const api::JobView& job : jobs) all.push_back(&job);
    std::string out;
    for (const FoldedJobs& one : fold_arrays(all)) {
      out += fmt::format("{}: {}; ", one.ids(), one.name());
    }
    return out;
  };
  std::vector<api::JobView> jobs;
  for (std::uint64_t id = 1; id <= 6; ++id) {
    jobs.push_back(screen_job(id, fmt::format("a_{}", id * 2), "alice", Status::Queued));
    jobs.back().spec.group = "g";
  }
  EXPECT_EQ(folded(jobs), "1-6: a_[2,4,6,8,10,12]; ");
  jobs[0].status = Status::Running;
  jobs[3].spec.request.gpus = 2;  // changed since
  EXPECT_EQ(folded(jobs), "1: a_2; 2-3,5-6: a_[4,6,10,12]; 4: a_8; ");
  jobs[1].spec.name = "brave-river-1234";
  EXPECT_EQ(folded(jobs), "1: a_2; 2-3,5-6: g (4 jobs); 4: a_8; ");
  jobs[2].spec.user.name = "bob";  // a group is its owner's
  EXPECT_EQ(folded(jobs), "1: a_2; 2,5-6: g (3 jobs); 3: a_6; 4: a_8; ");
  for (api::JobView& job : jobs) job.spec.group.clear();
  EXPECT_TRUE(folded(jobs).starts_with("1: a_2; 2: brave-river-1234; 3: a_6; ")) << folded(jobs);
}

/// However its jobs come, a screen that is written piece by piece is that of all at once, but for
/// the width of its columns.
TEST(ScreenStream, IsTheScreenOfAllAtOnce) {
  const ListedJobs listed = busy();
  const std::vector<JobId> order = [] {
    std::vector<JobId> ids = {JobId(1), JobId(2), JobId(3)};
    for (std::uint64_t id = 4; id <= 21; ++id) ids.emplace_back(id);
    for (const std::uint64_t id : {24U, 23U, 22U, 25U}) ids.emplace_back(id);
    return ids;
  }();
  for (const std::size_t piece : {1U, 4U, 7U, 25U}) {
    const Listing listing;
    const Viewer who = viewer(120);
    ScreenStream stream(listing, who, Painter());
    stream.know(listed.queue);
    std::string text;
    std::vector<api::JobView> jobs;
    for (const JobId id : order) {
      jobs.push_back(*std::ranges::find(listed.page.jobs, id, &api::JobView::id));
      if (jobs.size() == piece) text += stream.add(std::exchange(jobs, {}));
    }
    text += stream.add(jobs);
    text += stream.end();
    const std::string whole = queue_screen(listing, listed, who, Painter());
    EXPECT_EQ(words_of(text), words_of(whole)) << piece;
    EXPECT_EQ(stream.first_waiting(), JobId(3));
  }
}

TEST(Fold, JoinsTasksThatComeLaterAndKeepsNoJobOfThem) {
  ArrayFolder folder(Folding::Waiting);
  std::size_t taken = 0;
  for (std::uint64_t id = 1; id <= 5000; ++id) {
    api::JobView job = screen_job(id, fmt::format("a_{}", id), "alice", Status::Queued);
    job.spec.group = id == 5000 ? "" : "g";
    const auto kept = std::make_shared<const api::JobView>(std::move(job));
    folder.add(kept);
    EXPECT_EQ(kept.use_count(), id == 1 || id == 5000 ? 2 : 1);
    taken += folder.take_complete().size();
  }
  EXPECT_EQ(taken, 0U) << "the next may be one of the array";
  const auto rows = folder.take_all();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows.front().ids(), "1-4999");
  EXPECT_EQ(rows.front().name(), "a_[1-4999]");
}

TEST(BeginOf, IsKnownOfWhatWaitsForNothingElse) {
  api::JobView job = screen_job(9, "x", "alice", Status::Queued);
  EXPECT_FALSE(api::begin_of(job, kNow)) << "it starts with the next pass";
  job.blockers = {{.kind = BlockerKind::BeginTime, .at = kNow + hours(7)}};
  EXPECT_EQ(api::begin_of(job, kNow),
            (api::ExpectedStart{kNow + hours(7), api::StartBy::BeginTime}));
  EXPECT_EQ(api::begin_of(job, kNow + hours(8))->at, kNow + hours(8));
  job.blockers.push_back({.kind = BlockerKind::OnHold});
  EXPECT_FALSE(api::begin_of(job, kNow));
}

}  // namespace
}  // namespace gflow::cli
