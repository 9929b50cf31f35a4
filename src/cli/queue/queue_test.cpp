// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <span>

#include "api/job_page.h"
#include "api/json.h"
#include "api/samples_test.h"
#include "cli/queue/fields.h"
#include "cli/queue/listing.h"
#include "cli/queue/tree.h"
#include "core/gpu_request.h"

namespace gflow::cli {
namespace {

using std::chrono::seconds;

api::JobView job(std::uint64_t id, std::string name, Status status, int gpus) {
  api::JobView view;
  view.id = JobId(id);
  view.spec.name = std::move(name);
  view.spec.request.gpus = gpus;
  view.spec.user.name = "alice";
  view.status = status;
  return view;
}

api::JobView running(std::uint64_t id, std::string name, std::vector<int> gpus, seconds time) {
  api::JobView view = job(id, std::move(name), Status::Running, static_cast<int>(gpus.size()));
  view.node_list = fmt::format("{}", fmt::join(gpus, ","));
  view.gpu_indices = std::move(gpus);
  view.started = WallTime{};
  view.run_time = time;
  return view;
}

api::JobView waiting(std::uint64_t id, std::string name, int gpus, std::string reason) {
  api::JobView view = job(id, std::move(name), Status::Queued, gpus);
  view.reason = std::move(reason);
  return view;
}

api::JobView after(std::uint64_t id, const std::vector<std::uint64_t>& parents) {
  api::JobView view = waiting(id, fmt::format("job-{}", id), 0, "Dependency");
  for (const std::uint64_t parent : parents) view.spec.dependencies.jobs.emplace_back(parent);
  return view;
}

Listing listing(std::string_view fields) { return {*choose_fields(fields)}; }

TEST(Listing, IsAsInTheDocuments) {
  const api::JobPage page{{running(1, "job-1", {0, 1}, seconds(3723)),
                           waiting(2, "job-2", 1, "Resources"),
                           waiting(5, "job-5", 4, "Resources: Need 4 GPUs, only 1 available")},
                          {},
                          {},
                          0};
  EXPECT_EQ(
      listing_text(listing(kDefaultFields), page, Painter()),
      "JOBID    NAME                ST    TIME        NODES    NODELIST(REASON)\n"
      "1        job-1               R     01:02:03    2        0,1\n"
      "2        job-2               PD    -           1        (Resources)\n"
      "5        job-5               PD    -           4        (Resources: Need 4 GPUs, only 1 "
      "available)\n");
  EXPECT_EQ(listing_text(listing("jobid,NODES,NodeList"), page, Painter()),
            "JOBID    NODES    NODELIST(REASON)\n"
            "1        2        0,1\n"
            "2        1        (Resources)\n"
            "5        4        (Resources: Need 4 GPUs, only 1 available)\n");
  api::JobPage shared = page;
  shared.jobs.resize(2);
  apply(*parse_gpu_request("8g,0.5(t4)"), shared.jobs[1].spec.request);
  EXPECT_EQ(listing_text(listing("JOBID,NODES,GPUS,MODE"), shared, Painter()),
            "JOBID    NODES    GPUS          MODE\n"
            "1        2        2             whole\n"
            "2        1        8G,0.5(T4)    fraction\n");
  EXPECT_EQ(listing_text(listing(kDefaultFields), {}, Painter()),
            "JOBID    NAME                ST    TIME    NODES    NODELIST(REASON)\n");
}

TEST(Listing, SaysWhereOrWhy) {
  struct Case {
    Status status;
    std::string gpus;
    std::string reason;
    std::string_view want;
  };
  const Case cases[] = {
      {Status::Running, "0,3", "", "0,3"},
      {Status::Running, "n1:0,3 n2:1", "", "n1:0,3 n2:1"},
      {Status::Starting, "0", "", "0"},
      {Status::Completing, "1", "", "1"},
      {Status::Running, "", "", "-"},
      {Status::Suspended, "0,3", "Suspended by bob", "0,3 (Suspended by bob)"},
      {Status::Suspended, "", "Suspended by bob", "(Suspended by bob)"},
      {Status::Suspended, "0", "", "0"},
      {Status::Queued, "", "Priority", "(Priority)"},
      {Status::Queued, "", "", "-"},
      {Status::Hold, "", "JobHeldUser", "(JobHeldUser)"},
      {Status::Finished, "0", "exited with code 0", "-"},
      {Status::Failed, "0", "exited with code 1", "(exited with code 1)"},
      {Status::Cancelled, "", "cancelled by \x1b[31mbob", "(cancelled by \\x1b[31mbob)"},
  };
  for (const Case& c : cases) {
    api::JobView view = job(1, "x", c.status, 0);
    view.node_list = c.gpus;
    view.reason = c.reason;
    EXPECT_EQ(where_or_why(view), c.want) << status_name(c.status);
  }
}

TEST(Listing, HasAllFieldsAndSaysWhichThereAre) {
  for (const Field& field : queue_fields()) {
    ASSERT_TRUE(choose_fields(field.name)) << field.name;
    EXPECT_FALSE(field.cell(job(1, "x", Status::Queued, 1)).text.empty()) << field.name;
    EXPECT_FALSE(field.help.empty()) << field.name;
  }
  const auto wrong = choose_fields("JOBID,FOO");
  EXPECT_EQ(wrong.error().code, Code::Usage);
  EXPECT_TRUE(wrong.error().message.starts_with("'FOO' is not a field; the fields are JOBID, NAME"))
      << wrong.error().message;
  EXPECT_FALSE(choose_fields(""));
}

TEST(Listing, GroupsByStateHeldJobsToo) {
  Listing grouped = listing("JOBID");
  grouped.layout = Layout::Grouped;
  const api::JobPage page{
      {job(1, "a", Status::Hold, 0), job(2, "b", Status::Running, 0), job(3, "c", Status::Hold, 0)},
      {},
      {},
      0};
  std::string rule;
  for (int i = 0; i < 60; ++i) rule += "─";
  EXPECT_EQ(listing_text(grouped, page, Painter()),
            fmt::format("Running (1)\n{0}\nJOBID\n2\n\nHold (2)\n{0}\nJOBID\n1\n3\n", rule));
}

TEST(Listing, FillsATemplate) {
  Listing text;
  text.format = Format::Template;
  const auto read = read_template(R"({"id": {jobid}, "name": "{name}"} {})");
  ASSERT_TRUE(read);
  text.text_template = *read;
  EXPECT_EQ(needs_of(text), (std::vector<std::string>{"id", "spec.name"}));
  EXPECT_EQ(listing_text(text, {{job(7, "x", Status::Queued, 0)}, {}, {}, 0}, Painter()),
            "{\"id\": 7, \"name\": \"x\"} {}\n");
  const auto unknown = read_template("{jobid} {bogus}");
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(unknown.error().message.starts_with("'bogus' is not a field; the fields are"))
      << unknown.error().message;
}

TEST(Listing, AsksForWhatItsFormLooksAt) {
  using Names = std::vector<std::string>;
  Listing rows = listing("JOBID,ST");
  EXPECT_EQ(needs_of(rows), (Names{"id", "status"}));
  rows.layout = Layout::Tree;
  EXPECT_EQ(needs_of(rows), (Names{"id", "spec.dependencies", "status"}));
  rows.format = Format::JsonLines;
  EXPECT_EQ(needs_of(rows), Names{}) << "all of it";
  Listing words;
  words.format = Format::Template;
  words.text_template = *read_template("no field");
  EXPECT_EQ(needs_of(words), Names{"id"});
}

TEST(Listing, IsTheSameJsonInPieces) {
  const std::vector<api::JobView> jobs = {
      api::sample_job(), job(2, "b", Status::Running, 0), api::sample_job()};
  for (std::size_t first = 0; first <= jobs.size(); ++first) {
    api::JobPagePieces pieces(42);
    const std::span all(jobs);
    std::string text = pieces.begin();
    for (const auto part : {all.first(first), all.first(0), all.subspan(first)}) {
      text += pieces.add(part);
    }
    text += pieces.end();
    EXPECT_EQ(text, api::write(api::JobPage{jobs, {}, {}, 42}));
  }
  EXPECT_EQ(api::JobPagePieces(7).begin() + api::JobPagePieces(7).end(),
            api::write(api::JobPage{{}, {}, {}, 7}));
}

TEST(Fields, LookAtNoMoreThanTheyNeed) {
  std::vector<api::JobView> jobs = {api::sample_job(), api::sample_job(), api::sample_job()};
  jobs[1].status = Status::Running;
  jobs[1].ended.reset();
  jobs[1].outcome.reset();
  jobs[2] = jobs[1];
  jobs[2].status = Status::Queued;
  jobs[2].started.reset();
  jobs.push_back(jobs[2]);
  jobs[3].spec.begin = jobs[3].submitted + std::chrono::hours(1);
  jobs[3].reason = blocker_text(blocker::BeginTime{*jobs[3].spec.begin});
  for (const Field& field : queue_fields()) {
    for (const api::JobView& job : jobs) {
      const std::vector<std::string> needs = needs_of({&field});
      ASSERT_TRUE(api::check_job_fields(needs)) << field.name;
      api::JobPageWriter page(1 << 20, needs);
      ASSERT_TRUE(page.add(job));
      const auto read = api::read_job_page(page.finish(1));
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(field.cell(read->jobs.front()).text, field.cell(job).text) << field.name;
    }
  }
}

TEST(Listing, SortsAndCuts) {
  std::vector<api::JobView> jobs = {job(1, "b", Status::Queued, 2),
                                    job(2, "a", Status::Running, 0),
                                    job(3, "c", Status::Queued, 1)};
  const auto ids = [&] {
    std::string out;
    for (const api::JobView& one : jobs) out += fmt::format("{}", one.id.value);
    return out;
  };
  for (const auto& [key, want] : {std::pair{"name", "213"},
                                  std::pair{"gpus", "231"},
                                  std::pair{"-id", "321"},
                                  std::pair{"state", "312"},
                                  std::pair{"ID", "123"}}) {
    const auto order = parse_job_order(key);
    ASSERT_TRUE(order);
    sort_jobs(jobs, *order);
    EXPECT_EQ(ids(), want) << key;
  }
  EXPECT_EQ(parse_job_order("color").error().code, Code::Usage);
  limit_jobs(jobs, 0);
  EXPECT_EQ(ids(), "123");
  limit_jobs(jobs, -2);
  EXPECT_EQ(ids(), "23");
  limit_jobs(jobs, 1);
  EXPECT_EQ(ids(), "2");
  limit_jobs(jobs, 5);
  EXPECT_EQ(ids(), "2");
}

TEST(Tree, HangsJobsUnderWhatTheyWaitFor) {
  Listing tree = listing("JOBID,NAME");
  tree.layout = Layout::Tree;
  const api::JobPage page{
      {after(1, {}), after(2, {1}), after(3, {2}), after(4, {1}), after(5, {2, 4}), after(6, {99})},
      {},
      {},
      0};
  EXPECT_EQ(listing_text(tree, page, Painter()),
            "JOBID              NAME\n"
            "1                  job-1\n"
            "├─2                job-2\n"
            "│ ├─3              job-3\n"
            "│ ╰─5              job-5\n"
            "╰─4                job-4\n"
            "  ╰─→ see job 5\n"
            "6                  job-6\n");
}

std::vector<FoldedJobs> each_alone(const std::vector<api::JobView>& jobs) {
  std::vector<const api::JobView*> all;
  for (const api::JobView& job : jobs) all.push_back(&job);
  return unfolded(all);
}

TEST(Tree, LosesNoJobInARing) {
  const std::vector<api::JobView> jobs = {after(1, {2}), after(2, {1})};
  std::vector<std::uint64_t> shown;
  for (const TreeLine& line : dependency_tree(each_alone(jobs))) {
    if (!line.elsewhere) shown.push_back(line.jobs.first().id.value);
  }
  EXPECT_EQ(shown, (std::vector<std::uint64_t>{1, 2}));
}

TEST(Tree, FollowsLongChains) {
  std::vector<api::JobView> chain = {after(1, {})};
  for (std::uint64_t id = 2; id <= 3000; ++id) chain.push_back(after(id, {id - 1}));
  const std::vector<TreeLine> lines = dependency_tree(each_alone(chain));
  ASSERT_EQ(lines.size(), chain.size());
  EXPECT_EQ(lines.back().jobs.first().id, JobId(3000));
  std::size_t bytes = 0;
  for (const TreeLine& line : lines) bytes += line.prefix.size();
  EXPECT_LT(bytes, chain.size() * 60) << "the indentation grows with the chain";
  EXPECT_NE(lines[20].prefix, lines[21].prefix);
  EXPECT_EQ(lines[100].prefix, lines[2999].prefix);
}

}  // namespace
}  // namespace gflow::cli
