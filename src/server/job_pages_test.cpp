// SPDX-License-Identifier: Apache-2.0
// Jobs by pages: each can be read, and all show all jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/json.h"
#include "server/fake_desk.h"

namespace gflow::server {
namespace {

/// Others have their turn after each piece: counts those, and goes on at once.
struct Turns : FairWork {
  int pieces = 0;

  void later(const Principal& /*caller*/, std::function<void()> piece) override {
    ++pieces;
    piece();
  }
  void aside(const Principal& /*caller*/,
             std::function<void()> work,
             std::function<void()> then) override {
    work();
    then();
  }
  std::shared_ptr<void> lend(std::shared_ptr<void> of_loop) override { return of_loop; }
};

TEST(Listing, AJobOfManyDependenciesIsAPieceOfItsOwn) {
  FakeDesk desk;
  std::string hundreds;
  for (int i = 0; i < 600; ++i) {
    const JobId id = desk.submit(kAlice, R"("hold":true)");
    hundreds += (i == 0 ? "" : ",") + std::to_string(id.value);
  }
  std::vector<JobId> dependents;
  for (int i = 0; i < 5; ++i) {
    dependents.push_back(desk.submit(
        kAlice, R"("dependencies":{"jobs":[)" + hundreds + R"(],"auto_cancel":false})"));
  }
  Turns turns;
  desk.fair_work = &turns;
  const Reply reply = desk.ask(kAlice, "GET", "/api/v1/jobs", "", "after=600&limit=20");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(turns.pieces, 4);
  const auto page = api::read_job_page(reply.body);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->jobs.size(), dependents.size());
}

TEST(Jobs, AreListedByPages) {
  FakeDesk desk;
  for (int i = 0; i < 5; ++i) (void)desk.submit(i == 2 ? kBob : kAlice, R"("request":{"gpus":1})");
  const auto list = [&desk](const std::string& query) {
    return api::read_job_page(desk.ask(kAlice, "GET", "/api/v1/jobs", {}, query).body).value();
  };
  const auto ids = [](const api::JobPage& page) {
    std::vector<std::uint64_t> found;
    for (const api::JobView& job : page.jobs) found.push_back(job.id.value);
    return found;
  };
  using Ids = std::vector<std::uint64_t>;
  EXPECT_EQ(ids(list("")), (Ids{1, 2, 3, 4, 5}));
  EXPECT_FALSE(list("limit=5").next_after);
  EXPECT_EQ(list("limit=2").next_after, JobId(2));
  EXPECT_EQ(ids(list("limit=2&after=2")), (Ids{3, 4}));
  EXPECT_EQ(ids(list("state=Running")), (Ids{1, 2}));
  EXPECT_EQ(ids(list("user=bob")), (Ids{3}));
  EXPECT_EQ(ids(list("job=2,4-9")), (Ids{2, 4, 5}));
  EXPECT_EQ(list("job=3").jobs[0].blockers[0].code, "Resources");
  EXPECT_EQ(desk.ask(kAlice, "GET", "/api/v1/jobs", {}, "states=R").status, 400);
}

TEST(Jobs, PagesByRunTimeGoOnWhateverTheClockSays) {
  for (const auto by : {std::chrono::hours(100), std::chrono::hours(-100)}) {
    FakeDesk desk;
    for (int i = 0; i < 4; ++i) {
      (void)desk.submit(kAlice, R"("request":{"gpus":0})");
      desk.service.advance(std::chrono::minutes(1));
    }
    std::vector<std::uint64_t> seen;
    std::string query = "sort=time&limit=1";
    for (int page = 0; page < 8 && !query.empty(); ++page) {
      const Reply reply = desk.ask(kAlice, "GET", "/api/v1/jobs", {}, query);
      ASSERT_EQ(reply.status, 200) << reply.body;
      const auto jobs = desk.read(reply, api::read_job_page).jobs;
      for (const api::JobView& job : jobs) seen.push_back(job.id.value);
      const std::string link = header(reply, "Link");
      const std::size_t begin = link.find('?');
      query = link.empty() ? "" : link.substr(begin + 1, link.find('>') - begin - 1);
      desk.service.set_clock(by);
      desk.service.advance(std::chrono::seconds(1));
    }
    std::ranges::sort(seen);
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  }
}

TEST(Jobs, APageTellsWhereTheNextOneIs) {
  FakeDesk desk;
  for (int i = 0; i < 5; ++i) (void)desk.submit(kAlice, R"("hold":true,"name":"a b")");
  const auto link = [&desk](const std::string& path, const std::string& query) {
    return header(desk.ask(kAlice, "GET", path, {}, query), "Link");
  };
  EXPECT_EQ(link("/api/v1/jobs", "limit=2"), "</api/v1/jobs?limit=2&after=2>; rel=\"next\"");
  EXPECT_EQ(link("/api/v1/jobs", "after=2&limit=2"),
            "</api/v1/jobs?limit=2&after=4>; rel=\"next\"");
  EXPECT_EQ(link("/api/v1/jobs", "after=4&limit=2"), "");
  EXPECT_EQ(link("/api/v1/jobs", "limit=2&name=a+*&name=%3E"),
            "</api/v1/jobs?limit=2&name=a%20*&name=%3E&after=2>; rel=\"next\"");
  const std::string sorted = link("/api/v1/jobs", "limit=3&sort=-priority");
  const std::size_t begin = sorted.find('?') + 1;
  const auto rest = api::read_job_page(
      desk.ask(kAlice, "GET", "/api/v1/jobs", {}, sorted.substr(begin, sorted.find('>') - begin))
          .body);
  ASSERT_TRUE(rest) << sorted;
  EXPECT_EQ(rest->jobs.size(), 2U);
  // More than some read of headers: then it is only in the page.
  EXPECT_EQ(link("/api/v1/jobs", "limit=2&user=alice," + std::string(5000, 'b')), "");
}

TEST(Jobs, AFieldOfTheRequestIsShownAlone) {
  FakeDesk desk;
  (void)desk.submit(kAlice, R"("hold":true,"request":{"gpus":2})");
  const auto jobs = [&desk](const std::string& fields) {
    const std::string body = desk.ask(kAlice, "GET", "/api/v1/jobs", {}, "fields=" + fields).body;
    const std::size_t begin = body.find("[{");
    return body.substr(begin, body.find(",\"next\"") - begin);
  };
  EXPECT_EQ(jobs("spec.request.gpus,status"),
            R"([{"id":1,"status":"Hold","spec":{"request":{"gpus":2}}}])");
  EXPECT_EQ(jobs("spec.request.gpus,spec.request"), jobs("spec.request"));
}

/// Whatever is in a job: a page can be read, and all pages show all jobs.
struct Fat {
  const char* what;
  int jobs;
  std::function<std::string(int)> spec;
};

std::size_t read_all_pages(FakeDesk& desk, const std::string& query) {
  std::size_t seen = 0;
  for (std::optional<JobId> after = JobId{}; after;) {
    const Reply reply = desk.ask(
        kAlice, "GET", "/api/v1/jobs", {}, query + "after=" + std::to_string(after->value));
    EXPECT_LT(reply.body.size(), 2U << 20);
    const auto page = api::read_job_page(reply.body);
    if (!page || page->jobs.empty()) {
      ADD_FAILURE() << (page ? "an empty page" : page.error().message);
      return seen;
    }
    seen += page->jobs.size();
    after = page->next_after;
  }
  return seen;
}

TEST(Jobs, APageIsCutByItsSizeWhateverIsInIt) {
  const std::vector<Fat> cases = {
      {"commands",
       200,
       [](int) { return R"("hold":true,"command":")" + std::string(16'000, 'x') + '"'; }},
      {"what grows when it is written",
       200,
       [](int) {
         return R"("hold":true,"command":")" + [] {
           std::string text;
           for (int i = 0; i < 4000; ++i) text += "\\u0001";
           return text;
         }() + '"';
       }},
      {"dependencies",
       700,
       [](int i) {
         if (i < 350) return std::string(R"("hold":true)");
         std::string on = "1";
         for (int id = 2; id <= 350; ++id) on += "," + std::to_string(id);
         return R"("dependencies":{"jobs":[)" + on + "]}";
       }},
  };
  for (const Fat& fat : cases) {
    SCOPED_TRACE(fat.what);
    FakeDesk desk;
    for (int i = 0; i < fat.jobs; ++i) {
      const Reply reply = desk.ask(kAlice,
                                   "POST",
                                   "/api/v1/jobs",
                                   R"({"items":[{"spec":{"work_dir":"/",)" + fat.spec(i) +
                                       R"(},"payload":{"argv":["a"]}}]})");
      ASSERT_EQ(reply.status, 201) << reply.body;
    }
    EXPECT_EQ(read_all_pages(desk, ""), static_cast<std::size_t>(fat.jobs));
    EXPECT_EQ(read_all_pages(desk, "limit=7&"), static_cast<std::size_t>(fat.jobs));
  }
}

}  // namespace
}  // namespace gflow::server
