// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "server/routes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/json.h"
#include "api/placement_view.h"
#include "server/fake_desk.h"

namespace gflow::server {
namespace {

using Desk = FakeDesk;

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
  Desk desk;
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

/// Every route there is, and who may use it: written out, so that neither a route that goes nor one
/// that opens to everybody goes unnoticed.
struct Right {
  const char* method;
  const char* path;
  Role least;  ///< and those with more
};
constexpr Right kRights[] = {
    {"GET", "/healthz", Role::User},
    {"GET", "/metrics", Role::User},
    {"GET", "/docs", Role::User},
    {"GET", "/docs/style.css", Role::User},
    {"GET", "/docs/script.js", Role::User},
    {"GET", "/api/v1/jobs", Role::User},
    {"POST", "/api/v1/jobs", Role::User},
    {"PATCH", "/api/v1/jobs", Role::User},
    {"POST", "/api/v1/jobs/cancel", Role::User},
    {"POST", "/api/v1/jobs/signal", Role::User},
    {"POST", "/api/v1/jobs/hold", Role::User},
    {"POST", "/api/v1/jobs/release", Role::User},
    {"POST", "/api/v1/jobs/check", Role::User},
    {"GET", "/api/v1/jobs/newest", Role::User},
    {"GET", "/api/v1/jobs/7", Role::User},
    {"PATCH", "/api/v1/jobs/7", Role::User},
    {"DELETE", "/api/v1/jobs/7", Role::User},
    {"GET", "/api/v1/jobs/7/explain", Role::User},
    {"GET", "/api/v1/jobs/7/log", Role::User},
    {"GET", "/api/v1/groups", Role::User},
    {"GET", "/api/v1/groups/sweep", Role::User},
    {"GET", "/api/v1/statistics", Role::User},
    {"GET", "/api/v1/nodes", Role::User},
    {"GET", "/api/v1/nodes/lab1", Role::User},
    {"GET", "/api/v1/devices", Role::User},
    {"GET", "/api/v1/devices/GPU-1", Role::User},
    {"GET", "/api/v1/topology", Role::User},
    {"GET", "/api/v1/machine", Role::User},
    {"POST", "/api/v1/place", Role::User},
    {"GET", "/api/v1/snapshot", Role::User},
    {"GET", "/api/v1/drain", Role::User},
    {"POST", "/api/v1/drain", Role::Operator},
    {"GET", "/api/v1/daemon", Role::User},
    {"POST", "/api/v1/daemon/stop", Role::Administrator},
    {"POST", "/api/v1/daemon/reload", Role::Administrator},
    {"GET", "/api/v1/events", Role::User},
    {"GET", "/api/v1/principal", Role::User},
    {"GET", "/api/v1/settings", Role::User},
    {"GET", "/api/v1/openapi.json", Role::User},
    {"GET", "/api/v1/tokens", Role::User},
    {"POST", "/api/v1/tokens", Role::User},
    {"DELETE", "/api/v1/tokens/ci", Role::User},
    {"GET", "/api/v1/changes", Role::User},
    {"GET", "/api/v1/gpu/status", Role::User},
    {"GET", "/api/v1/gpu/nodes", Role::User},
    {"GET", "/api/v1/gpu/health", Role::User},
    {"GET", "/api/v1/gpu/monitoring", Role::User},
    {"POST", "/api/v1/gpu/validate", Role::User},
    {"POST", "/api/v1/gpu/allocate", Role::User},
    {"POST", "/api/v1/gpu/setup-pytorch", Role::User},
    {"POST", "/api/v1/gpu/setup-tensorflow", Role::User},
    {"DELETE", "/api/v1/gpu/cleanup/lab1", Role::User},
    {"GET", "/api/v1/gpu/allocations", Role::User},
    {"GET", "/api/v1/gpu/allocations/7", Role::User},
    {"DELETE", "/api/v1/gpu/allocations/7", Role::User},
    {"POST", "/api/v1/gpu/allocations/7/renew", Role::User},
};

TEST(Routes, AreThoseAndForThose) {
  EXPECT_EQ(routes().size(), std::size(kRights)) << "a new route needs its line here";
  for (const Right& right : kRights) {
    Desk desk;
    const Reply reply = desk.ask(kAlice, right.method, right.path, "{}", "");
    EXPECT_NE(reply.status, 405) << right.path;
    EXPECT_EQ(reply.body.find("there is no '"), std::string::npos) << reply.body;
    EXPECT_EQ(reply.status == 403, right.least > Role::User)
        << right.method << ' ' << right.path << ' ' << reply.body;
    EXPECT_FALSE(desk.service.stopped);
    const Reply operated = desk.ask(kOperator, right.method, right.path, "{}", "");
    EXPECT_EQ(operated.status == 403, right.least > Role::Operator)
        << right.method << ' ' << right.path << ' ' << operated.body;
    EXPECT_FALSE(desk.service.stopped);
    const Reply allowed = desk.ask(kRoot, right.method, right.path, "{}", "");
    EXPECT_NE(allowed.status, 403) << right.path;
  }
}

/// Whoever only reads changes nothing, whatever is asked.
TEST(Routes, ThatReadChangeNothing) {
  for (const Right& right : kRights) {
    if (std::string_view(right.method) != "GET" &&
        std::string_view(right.path) != "/api/v1/place") {
      continue;
    }
    Desk desk;
    (void)desk.submit(kAlice, R"("hold":true)");
    const std::uint64_t before = desk.service.state().revision();
    (void)desk.ask(kRoot, right.method, right.path, R"({"request":{"gpus":1}})", "revision=0");
    EXPECT_EQ(desk.service.state().revision(), before) << right.path;
  }
}

TEST(Routes, PlaceSaysWhatKeepsTheJobWaitingWhateverIsFree) {
  Desk desk;
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

TEST(Routes, CheckAnswersAsASubmissionAndTakesNothing) {
  Desk desk;
  for (const std::string body : {R"({"jobs":[{"command":"true"}]})",
                                 R"({"jobs":[{"command":"true","gpus":"9"}]})",
                                 R"({"jobs":[{"command":"true","dependencies":{"jobs":[99]}}]})",
                                 R"({"jobs":[]})",
                                 R"({})"}) {
    const std::uint64_t before = desk.service.state().revision();
    const Reply checked = desk.ask(kBob, "POST", "/api/v1/jobs/check", body);
    EXPECT_EQ(desk.service.state().revision(), before) << body;
    const Reply taken = desk.ask(kBob, "POST", "/api/v1/jobs", body);
    EXPECT_EQ(checked.status == 200, taken.status == 201) << body << checked.body << taken.body;
    if (checked.status != 200) {
      EXPECT_EQ(checked.body, taken.body) << body;
    }
  }
}

/// Of a group those that run count, and those that stand in the queue before them.
TEST(Routes, PlaceKnowsHowManyOfAGroupMayRun) {
  Desk desk;
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
}

TEST(Routes, WebPagesAreRefusedEverywhere) {
  for (const Route& route : routes()) {
    Desk desk;
    const auto reply = desk.ask(
        kRoot, {std::string(route.method), std::string(route.pattern), "", "http://evil", "", ""});
    ASSERT_TRUE(reply) << route.pattern;
    EXPECT_EQ(reply->status, 403) << route.pattern;
  }
}

TEST(Routes, WhatIsNotThereIsNamedWithTheNearest) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/api/v1/job", "there is no '/api/v1/job'; did you mean '/api/v1/jobs'?"},
      {"/api/v1/jobs/", "there is no '/api/v1/jobs/'; did you mean '/api/v1/jobs'?"},
      {"/api/v1/jobs/newst",
       "there is no '/api/v1/jobs/newst'; did you mean '/api/v1/jobs/newest'?"},
      {"/completely/else/where/and/far", "there is no '/completely/else/where/and/far'"},
      {"/\x1b[2J", "there is no '/\\x1b[2J'"},
      {"", "there is no ''"},
      {"/api/v1/jobs/7", "there is no job 7"},
      {"/api/v1/jobs/18446744073709551616", "there is no job 18446744073709551616"},
  };
  for (const auto& [path, message] : cases) {
    Desk desk;
    const Reply reply = desk.ask(kAlice, "GET", path);
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(reply.content_type, "application/problem+json");
    EXPECT_EQ(api::read_problem(reply.status, reply.body).code, Code::NotFound);
    EXPECT_NE(reply.body.find(api::write_problem({Code::NotFound, message}).substr(90)),
              std::string::npos)
        << reply.body;
  }
}

TEST(Routes, AMethodAPathDoesNotTakeIsNamedWithThoseItDoes) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"DELETE", "/api/v1/jobs", "GET, HEAD, POST, PATCH, OPTIONS"},
      {"GET", "/api/v1/jobs/cancel", "POST, OPTIONS"},
      {"HEAD", "/api/v1/jobs/cancel", "POST, OPTIONS"},
      {"POST", "/api/v1/jobs/7", "GET, HEAD, PATCH, DELETE, OPTIONS"},
      {"options", "/api/v1/daemon/stop", "POST, OPTIONS"},
      {"get", "/healthz", "GET, HEAD, OPTIONS"},
  };
  for (const auto& [method, path, allow] : cases) {
    Desk desk;
    const Reply reply = desk.ask(kRoot, method, path);
    EXPECT_EQ(reply.status, 405) << path;
    EXPECT_EQ(header(reply, "Allow"), allow);
  }
}

TEST(Jobs, AreSubmittedInTheNameOfTheCaller) {
  Desk desk;
  const Reply reply = desk.ask(kAlice,
                               "POST",
                               "/api/v1/jobs",
                               R"({"items":[
    {"spec":{"work_dir":"/","name":"first","request":{"gpus":2}},"payload":{"argv":["true"]}},
    {"spec":{"work_dir":"/","name":"second","request":{"gpus":1}},"payload":{"argv":["true"]},
     "depends_on_siblings":[0]}]})");
  EXPECT_EQ(reply.status, 201) << reply.body;
  EXPECT_EQ(header(reply, "Location"), "/api/v1/jobs/1");
  const auto answer = api::read_submit_answer(reply.body);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->items.size(), 2U);
  EXPECT_EQ(answer->items[0].name, "first");
  EXPECT_EQ(answer->items[0].status, Status::Running);
  EXPECT_EQ(answer->items[1].status, Status::Queued);
  EXPECT_TRUE(answer->items[1].reason.starts_with("Dependency")) << answer->items[1].reason;
  EXPECT_EQ(desk.show(kAlice, JobId(2)).spec.user, record_of(kAlice));
  EXPECT_EQ(desk.show(kAlice, JobId(2)).spec.dependencies.jobs, std::vector{JobId(1)});
}

TEST(Jobs, ThatCanNeverRunAreRefused) {
  Desk desk;
  const Reply reply = desk.ask(
      kAlice,
      "POST",
      "/api/v1/jobs",
      R"({"items":[{"spec":{"work_dir":"/","request":{"gpus":9}},"payload":{"argv":["a"]}}]})");
  EXPECT_EQ(reply.status, 422);
  EXPECT_EQ(api::read_problem(reply.status, reply.body).code, Code::Infeasible);
}

TEST(Jobs, OfOthersCannotBeChanged) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"POST /api/v1/jobs/cancel", R"({"jobs":[1]})"},
      {"POST /api/v1/jobs/hold", R"({"jobs":[1]})"},
      {"POST /api/v1/jobs/release", R"({"jobs":[1]})"},
      {"PATCH /api/v1/jobs", R"({"jobs":[1],"priority":99})"},
  };
  for (const auto& [route, body] : changes) {
    Desk desk;
    const std::size_t space = route.find(' ');
    const std::string method = route.substr(0, space);
    const std::string path = route.substr(space + 1);
    const bool release = path.ends_with("release");
    (void)desk.submit(kAlice, release ? R"("hold":true)" : R"("begin":"2030-01-01T00:00:00Z")");
    EXPECT_EQ(desk.ask(kBob, method, path, body).status, 403) << route;
    const Reply reply = desk.ask(kRoot, method, path, body);
    EXPECT_EQ(reply.status, 200) << route << reply.body;
    EXPECT_EQ(reply.body, api::write_job_ids({JobId(1)}));
  }
}

TEST(Jobs, OfOthersShowNoCommand) {
  Desk desk;
  const JobId id = desk.submit(kAlice, R"("name":"train")");
  for (const Principal& caller : {kAlice, kRoot}) {
    EXPECT_EQ(desk.show(caller, id).spec.command, "secret");
    EXPECT_EQ(desk.show(caller, id).log_path, "/logs/1.log");
  }
  const api::JobView seen = desk.show(kBob, id);
  EXPECT_EQ(seen.spec.name, "train");
  EXPECT_EQ(seen.spec.command + seen.spec.work_dir + seen.log_path, "");
  for (const std::string path : {"/api/v1/jobs", "/api/v1/machine"}) {
    EXPECT_EQ(desk.ask(kBob, "GET", path).body.find("secret"), std::string::npos) << path;
    EXPECT_NE(desk.ask(kAlice, "GET", path).body.find("secret"), std::string::npos) << path;
  }
}

TEST(Jobs, AreListedByPages) {
  Desk desk;
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

/// Whatever is in a job: a page can be read, and all pages show all jobs.
struct Fat {
  const char* what;
  int jobs;
  std::function<std::string(int)> spec;
};

std::size_t read_all_pages(Desk& desk, const std::string& query) {
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
    Desk desk;
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

TEST(Jobs, TextsHaveLimits) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("command":")" + std::string(16'385, 'x') + '"', "its command has 16385 bytes"},
      {R"("group":")" + std::string(257, 'x') + '"', "its group has 257 bytes; the maximum is 256"},
      {R"("project":")" + std::string(257, 'x') + '"', "its project has 257 characters"},
      {R"("name":")" + std::string(300, 'x') + '"', "128"},
  };
  for (const auto& [spec, said] : cases) {
    Desk desk;
    const Reply reply = desk.ask(
        kAlice,
        "POST",
        "/api/v1/jobs",
        R"({"items":[{"spec":{"work_dir":"/",)" + spec + R"(},"payload":{"argv":["a"]}}]})");
    EXPECT_EQ(reply.status, 400);
    EXPECT_NE(reply.body.find(said), std::string::npos) << reply.body;
  }
}

TEST(Jobs, TextsHaveTheSameLimitsWhenTheyChange) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("project":")" + std::string(257, 'x') + '"',
       "its project has 257 characters; the maximum is 64"},
      {R"("project":" ")", "its project is blank"},
      {R"("request":{"gpu_vendor":")" + std::string(257, 'x') + "\"}", "its gpu vendor has 257"},
      {R"("request":{"selector":[{"key":"a","value":")" + std::string(257, 'x') + "\"}]}",
       "its selector has 257"},
      {R"("name":")" + std::string(300, 'x') + '"', "128"},
  };
  for (const auto& [change, said] : cases) {
    Desk desk;
    (void)desk.submit(kAlice, R"("hold":true)");
    const Reply reply = desk.ask(kAlice, "PATCH", "/api/v1/jobs", R"({"jobs":[1],)" + change + "}");
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_NE(reply.body.find(said), std::string::npos) << reply.body;
  }
}

TEST(Drains, AnIndexBesideAUuidIsOfTheSameGpu) {
  Desk desk;
  Machine machine = desk.service.state().nodes().at("lab1").machine;
  Device& first = machine.devices.at(0);
  first.uuid = "GPU-a";
  (void)desk.service.apply(engine::event::NodesChanged{{machine}});
  const auto ask = [&](int gpu) {
    return desk.ask(kRoot,
                    "POST",
                    "/api/v1/drain",
                    fmt::format(R"({{"gpu":{},"uuid":"{}"}})", gpu, first.uuid));
  };
  const Reply refused = ask(first.index + 1);
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_NE(refused.body.find(fmt::format("GPU {} is not {}", first.index + 1, first.uuid)),
            std::string::npos)
      << refused.body;
  EXPECT_EQ(ask(first.index).status, 200);
}

TEST(Jobs, TheNewestIsTheCallersOwn) {
  Desk desk;
  for (const Principal& caller : {kAlice, kAlice, kBob})
    (void)desk.submit(caller, R"("hold":true)");
  const auto newest = [&desk](const Principal& caller, const std::string& query) {
    return desk.ask(caller, "GET", "/api/v1/jobs/newest", {}, query);
  };
  EXPECT_EQ(api::read_job(newest(kAlice, "").body)->id, JobId(2));
  EXPECT_EQ(api::read_job(newest(kAlice, "back=1").body)->id, JobId(1));
  EXPECT_EQ(newest(kAlice, "back=2").status, 404);
  EXPECT_EQ(newest(kRoot, "").status, 404);
  EXPECT_EQ(newest(kAlice, "back=-1").status, 400);
  EXPECT_EQ(newest(kAlice, "bakc=1").status, 400);
}

TEST(Views, SayHowLongAJobRanAndHowItEnded) {
  Desk desk;
  const JobId id = desk.submit(kAlice, R"("request":{"gpus":2})");
  desk.service.advance(std::chrono::milliseconds(61'900));
  api::JobView job = desk.show(kAlice, id);
  EXPECT_EQ(job.status, Status::Running);
  EXPECT_EQ(job.run_time, std::chrono::seconds(61));
  EXPECT_EQ(job.node, "lab1");
  EXPECT_EQ(job.node_list, "0,1");
  EXPECT_EQ(job.gpu_indices, (std::vector{0, 1}));
  EXPECT_EQ(job.attempt, 1);
  EXPECT_EQ(job.pid, 100);
  EXPECT_EQ(job.reason, "");
  EXPECT_FALSE(job.ended);

  const auto machine = api::read_machine(desk.ask(kBob, "GET", "/api/v1/machine").body);
  ASSERT_TRUE(machine);
  ASSERT_EQ(machine->nodes.size(), 1U);
  const api::NodeView& node = machine->nodes.front();
  EXPECT_EQ(node.name, "lab1");
  ASSERT_EQ(node.devices.size(), 2U);
  EXPECT_EQ(node.devices[1].jobs, std::vector{id});
  EXPECT_FALSE(node.devices[1].available());
  EXPECT_EQ(machine->running.size(), 1U);
  EXPECT_EQ(machine->cpus, 64);

  desk.service.end(id, Outcome{EndReason::Exited, 3, 0, "", std::chrono::seconds(90), {}, {}});
  desk.service.advance(std::chrono::hours(1));
  job = desk.show(kAlice, id);
  EXPECT_EQ(job.status, Status::Failed);
  EXPECT_EQ(job.run_time, std::chrono::seconds(90));
  EXPECT_EQ(job.outcome->exit_code, 3);
  EXPECT_EQ(job.gpu_indices, (std::vector{0, 1}));
  EXPECT_TRUE(job.ended);
}

// What the machine says of a device is what the engine goes by.
TEST(Views, SayWhyADeviceIsNotGivenOut) {
  Desk desk;
  const auto tell = [&desk](const engine::Event& event) { (void)desk.service.apply(event); };
  const auto first = [&desk] {
    return api::read_machine(desk.ask(kBob, "GET", "/api/v1/machine").body)
        ->nodes.at(0)
        .devices.at(0);
  };
  Machine machine = desk.service.state().nodes().at("lab1").machine;
  machine.devices.at(0).processes = {{.pid = 4711, .user = "carol"}};
  tell(engine::event::NodesChanged{{machine}});
  EXPECT_EQ(first().bar, DeviceBar::InUse);
  EXPECT_FALSE(first().available());
  engine::Policy policy = desk.service.state().policy();
  policy.share_with_others = true;
  tell(engine::event::Configure{policy});
  EXPECT_EQ(first().bar, DeviceBar::None);
  EXPECT_TRUE(first().available());
  tell(engine::event::Drain{{"", 0, "fan", "root"}, false, kRoot});
  EXPECT_EQ(first().bar, DeviceBar::Drained);
  machine.devices.at(0).usable = false;
  tell(engine::event::NodesChanged{{machine}});
  EXPECT_EQ(first().bar, DeviceBar::Broken);
}

TEST(Changes, AreWaitedFor) {
  Desk desk;
  const JobId watched = desk.submit(kAlice, R"("hold":true)");
  const std::string now = std::to_string(desk.service.state().revision());
  std::vector<std::string> answers;
  const auto wait = [&](const std::string& query) {
    dispatch({desk.service,
              kAlice,
              {"GET", "/api/v1/changes", query, {}, {}, {}},
              [&answers](const Reply& reply) { answers.push_back(reply.body); },
              {}});
    desk.run_later();
  };
  wait("revision=" + now);
  wait("revision=" + now + "&job=" + std::to_string(watched.value));
  EXPECT_EQ(answers.size(), 0U);
  (void)desk.submit(kBob, R"("hold":true)");
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers.back(), api::write_revision(desk.service.state().revision()));
  (void)desk.ask(kAlice, "POST", "/api/v1/jobs/release", R"({"jobs":[1]})");
  EXPECT_EQ(answers.size(), 2U);
  wait("revision=" + now);
  EXPECT_EQ(answers.size(), 3U) << "what has changed already is not waited for";
  wait("revision=" + now + "&job=99");
  EXPECT_NE(answers.back().find("there is no job 99"), std::string::npos);
  wait("revison=1");
  EXPECT_NE(answers.back().find("did you mean 'revision'"), std::string::npos);
}

TEST(Daemon, StopsAndReloadsForAdministrators) {
  Desk desk;
  EXPECT_EQ(desk.ask(kRoot, "POST", "/api/v1/daemon/reload").status, 204);
  desk.service.reloaded = fail(Code::Usage, "gflow.toml:3: what is this");
  const Reply reply = desk.ask(kRoot, "POST", "/api/v1/daemon/reload");
  EXPECT_EQ(api::read_problem(reply.status, reply.body),
            (Error{Code::Usage, "gflow.toml:3: what is this"}));
  EXPECT_EQ(desk.ask(kRoot, "POST", "/api/v1/daemon/stop").status, 204);
  EXPECT_TRUE(desk.service.stopped);
  EXPECT_EQ(desk.ask(kBob, "GET", "/healthz").body, "ok\n");
}

}  // namespace
}  // namespace gflow::server
