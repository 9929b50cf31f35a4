// SPDX-License-Identifier: Apache-2.0
// Whose jobs are, who may change them, and what they may hold.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "api/json.h"
#include "server/fake_desk.h"

namespace gflow::server {
namespace {

TEST(Jobs, AreSubmittedInTheNameOfTheCaller) {
  FakeDesk desk;
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

TEST(Jobs, ThatWereForgottenAreToldOfByTheirSubmission) {
  FakeDesk desk;
  const Request once = {
      .method = "POST",
      .path = "/api/v1/jobs",
      .idempotency_key = "a-key",
      .body =
          R"({"items":[{"spec":{"work_dir":"/","name":"first"},"payload":{"argv":["true"]}}]})"};
  const auto first = desk.ask(kAlice, once);
  EXPECT_EQ(header(first.value(), "Location"), "/api/v1/jobs/1");
  (void)desk.service.apply(engine::event::Withdraw{{JobId(1)}});
  const Reply again = desk.ask(kAlice, once).value();
  EXPECT_EQ(again.status, 201) << again.body;
  EXPECT_EQ(header(again, "Location"), "") << "it would be 404";
  const auto answer = desk.read(again, api::read_submit_answer);
  ASSERT_EQ(answer.items.size(), 1U);
  EXPECT_EQ(answer.items.front().id, JobId(1));
  EXPECT_EQ(answer.items.front().name, "first");
}

TEST(Jobs, ThatCanNeverRunAreRefused) {
  FakeDesk desk;
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
    FakeDesk desk;
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
  FakeDesk desk;
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

/// A submission of one job that has this in its spec.
std::string submission_with(const std::string& spec) {
  return R"({"items":[{"spec":{"work_dir":"/","command":"true",)" + spec +
         R"(},"payload":{"argv":["true"]}}]})";
}

TEST(Jobs, CheckAnswersAsASubmissionAndTakesNothing) {
  struct Case {
    Principal caller;
    std::string body;
    int submitted;
  };
  const std::vector<Case> cases = {
      {kBob, submission_with(R"("request":{"gpus":1})"), 201},
      {kBob, submission_with(R"("request":{"gpus":9})"), 422},
      {kBob, submission_with(R"("dependencies":{"jobs":[99]})"), 404},
      {kBob, submission_with(R"("allocation":true)"), 400},
      {kBob, R"({"jobs":[{"command":"true"}]})", 400},
      {kBob, R"({})", 400},
      {kRoot, submission_with(R"("request":{"gpus":1})"), 201},
  };
  for (const Case& one : cases) {
    FakeDesk desk;
    const std::uint64_t before = desk.service.state().revision();
    const Reply checked = desk.ask(one.caller, "POST", "/api/v1/jobs/check", one.body);
    EXPECT_EQ(desk.service.state().revision(), before) << one.body;
    const Reply taken = desk.ask(one.caller, "POST", "/api/v1/jobs", one.body);
    EXPECT_EQ(taken.status, one.submitted) << one.body << taken.body;
    EXPECT_EQ(checked.status, one.submitted == 201 ? 200 : one.submitted)
        << one.body << checked.body;
    if (checked.status != 200) {
      EXPECT_EQ(checked.body, taken.body) << one.body;
    }
  }
}

TEST(Jobs, OfRootAreAskedAboutOverTcpAndNotSubmitted) {
  for (const KnownBy way : {KnownBy::Loopback, KnownBy::Token}) {
    FakeDesk desk;
    Principal root_over_tcp = kRoot;
    root_over_tcp.known_by = way;
    const auto status_of = [&](const std::string& path, const std::string& spec) {
      return desk.ask(root_over_tcp, "POST", path, submission_with(spec)).status;
    };
    EXPECT_EQ(status_of("/api/v1/jobs", R"("hold":true)"), 403);
    EXPECT_EQ(status_of("/api/v1/jobs/check", R"("hold":true)"), 200);
    EXPECT_EQ(status_of("/api/v1/jobs/check", R"("request":{"gpus":9})"), 422);
  }
}

TEST(Jobs, TextsHaveLimits) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("command":")" + std::string(16'385, 'x') + '"',
       "command: must not be longer than 16384 bytes"},
      {R"("group":")" + std::string(257, 'x') + '"', "its group has 257 bytes; the maximum is 256"},
      {R"("project":")" + std::string(257, 'x') + '"', "its project has 257 characters"},
      {R"("name":")" + std::string(300, 'x') + '"', "128"},
  };
  for (const auto& [spec, said] : cases) {
    FakeDesk desk;
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
    FakeDesk desk;
    (void)desk.submit(kAlice, R"("hold":true)");
    const Reply reply = desk.ask(kAlice, "PATCH", "/api/v1/jobs", R"({"jobs":[1],)" + change + "}");
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_NE(reply.body.find(said), std::string::npos) << reply.body;
  }
}

TEST(Jobs, TheNewestIsTheCallersOwn) {
  FakeDesk desk;
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

}  // namespace
}  // namespace gflow::server
