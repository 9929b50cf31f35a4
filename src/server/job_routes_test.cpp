// SPDX-License-Identifier: Apache-2.0
// One job as a resource: changed, ended, explained.
#include <gtest/gtest.h>

#include "api/explanation.h"
#include "api/queue.h"
#include "server/fake_desk.h"

namespace gflow::server {
namespace {

Request with_match(const std::string& method, const std::string& path, const std::string& tag) {
  Request request{method, path, "", {}, {}, method == "PATCH" ? R"({"priority":5})" : "", {}, {}};
  request.if_match = tag;
  return request;
}

TEST(OneJob, IsChangedByItsOwnerAndAnsweredAsItIsThen) {
  FakeDesk desk;
  (void)desk.submit(kAlice, R"("hold":true)");
  const std::string path = "/api/v1/jobs/1";
  const std::string change = R"({"priority":7,"request":{"gpus":2}})";
  EXPECT_EQ(desk.ask(kBob, "PATCH", path, change).status, 403);
  const Reply reply = desk.ask(kAlice, "PATCH", path, change);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const api::JobView job = desk.read(reply, api::read_job);
  EXPECT_EQ(job.id, JobId(1));
  EXPECT_EQ(job.spec.priority, 7);
  EXPECT_EQ(job.spec.request.gpus, 2);
  EXPECT_EQ(header(reply, "ETag"), header(desk.ask(kAlice, "GET", path), "ETag"));
  EXPECT_EQ(desk.ask(kAlice, "PATCH", "/api/v1/jobs/99", change).status, 404);
  const Reply misspelt = desk.ask(kAlice, "PATCH", path, R"({"priorty":7})");
  EXPECT_EQ(misspelt.status, 400);
  EXPECT_NE(misspelt.body.find("priority"), std::string::npos) << misspelt.body;
  EXPECT_EQ(desk.ask(kAlice, "PATCH", path, R"({"jobs":[1]})").status, 400)
      << "the path says which";
}

TEST(OneJob, IsCancelledByItsOwner) {
  FakeDesk desk;
  (void)desk.submit(kAlice, R"("hold":true)");
  const std::string path = "/api/v1/jobs/1";
  EXPECT_EQ(desk.ask(kBob, "DELETE", path).status, 403);
  EXPECT_EQ(desk.ask(kAlice, "DELETE", path, "", "signal=65").status, 400);
  const Reply reply = desk.ask(kAlice, "DELETE", path);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, api::write_job_ids({JobId(1)}));
  EXPECT_EQ(desk.show(kAlice, JobId(1)).status, Status::Cancelled);
  EXPECT_EQ(desk.ask(kAlice, "DELETE", path).status, 409) << "it has ended";
  EXPECT_EQ(desk.ask(kAlice, "DELETE", "/api/v1/jobs/99").status, 404);
}

TEST(OneJob, IsChangedOnlyAsIfMatchSays) {
  FakeDesk desk;
  (void)desk.submit(kAlice, R"("hold":true)");
  const std::string path = "/api/v1/jobs/1";
  const std::string before = header(desk.ask(kAlice, "GET", path), "ETag");
  ASSERT_FALSE(before.empty());
  const auto changed = desk.ask(kAlice, with_match("PATCH", path, before));
  ASSERT_TRUE(changed && changed->status == 200);
  EXPECT_NE(header(*changed, "ETag"), before);
  for (const std::string method : {"PATCH", "DELETE"}) {
    const auto refused = desk.ask(kAlice, with_match(method, path, before));
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 412) << refused->body;
  }
  EXPECT_EQ(desk.show(kAlice, JobId(1)).status, Status::Hold);
  EXPECT_EQ(desk.ask(kAlice, with_match("DELETE", path, header(*changed, "ETag")))->status, 200);
}

api::Explanation explain(FakeDesk& desk, const Principal& caller, JobId id) {
  const std::string path = "/api/v1/jobs/" + std::to_string(id.value) + "/explain";
  return desk.read(desk.ask(caller, "GET", path), api::read_explanation);
}

/// Each suggestion does what it says: the job starts, or stands before the one it stood behind.
TEST(Explain, SaysWhatItsOwnerMayDoAndThatHelps) {
  FakeDesk desk;
  const JobId held = desk.submit(kAlice, R"("request":{"gpus":1},"time_limit_seconds":3600)");
  const JobId waits = desk.submit(kAlice, R"("request":{"gpus":2})");
  const api::Explanation explanation = explain(desk, kAlice, waits);
  EXPECT_EQ(explanation.job, desk.show(kAlice, waits));
  ASSERT_EQ(explanation.job.blockers.size(), 1U);
  EXPECT_EQ(explanation.job.blockers[0].holders.at(0).job, held);
  ASSERT_TRUE(explanation.expected_start);
  const api::JobView holder = desk.show(kAlice, held);
  EXPECT_EQ(explanation.expected_start->at,
            holder.started.value() + std::chrono::hours(1) + holder.spec.grace);
  EXPECT_EQ(explanation.expected_start->by, api::StartBy::RunTimes) << "others may pass it";
  ASSERT_EQ(explanation.suggestions.size(), 1U);
  const api::Suggestion& fewer = explanation.suggestions[0];
  EXPECT_EQ(fewer.command, "gjob update 2 --gpus 1");
  EXPECT_EQ(fewer.action, "update");
  EXPECT_TRUE(explain(desk, kBob, waits).suggestions.empty()) << "it is not his";
  EXPECT_EQ(explain(desk, kOperator, waits).suggestions.size(), 1U);
  const Reply done =
      desk.ask(kAlice, "PATCH", "/api/v1/jobs/2", api::write_job_update(fewer.changes));
  EXPECT_EQ(desk.read(done, api::read_job).status, Status::Running) << done.body;
  EXPECT_TRUE(explain(desk, kAlice, waits).suggestions.empty());
  EXPECT_EQ(desk.ask(kAlice, "GET", "/api/v1/jobs/99/explain").status, 404);
}

TEST(Explain, KnowsThePriorityOfTheJobAhead) {
  FakeDesk desk;
  (void)desk.submit(kAlice, R"("request":{"gpus":2})");
  (void)desk.submit(kBob, R"("request":{"gpus":2},"priority":10)");
  const JobId behind = desk.submit(kAlice, R"("request":{"gpus":2},"priority":4)");
  const auto raises = [&](const Principal& caller) {
    for (const api::Suggestion& one : explain(desk, caller, behind).suggestions) {
      if (one.changes.has(&JobSpec::priority)) return one.changes.to().priority;
    }
    return 0;
  };
  EXPECT_EQ(raises(kOperator), 11);
  EXPECT_EQ(raises(kAlice), 0) << "users may not go over 10 here";
}

/// The service has one machine of two GPUs: what is behind the first has its turn, too.
TEST(Queue, HasItsOrderAndWhenItsJobsShouldStart) {
  FakeDesk desk;
  const auto queue = [&desk](const std::string& query = {}) {
    return desk.read(desk.ask(kBob, "GET", "/api/v1/queue", {}, query), api::read_queue);
  };
  EXPECT_TRUE(queue().jobs.empty());
  const JobId runs =
      desk.submit(kAlice, R"("request":{"gpus":2},"time_limit_seconds":3600,"grace_seconds":0)");
  const JobId first = desk.submit(kAlice, R"("request":{"gpus":2},"time_limit_seconds":600)");
  const JobId second = desk.submit(kBob, R"("request":{"gpus":2},"time_limit_seconds":600)");
  (void)desk.submit(kBob, R"("request":{"gpus":1},"hold":true)");
  const WallTime start = desk.show(kAlice, runs).started.value() + std::chrono::hours(1);
  const auto at = [](WallTime time) { return api::ExpectedStart{time, api::StartBy::RunTimes}; };
  const api::QueueView both = queue();
  ASSERT_EQ(both.jobs.size(), 2U) << "one that is held is not considered";
  EXPECT_EQ(both.jobs[0].expected_start, at(start));
  EXPECT_EQ(both.jobs[1].expected_start, at(start + std::chrono::minutes(10)));
  EXPECT_EQ(both.jobs[0].id.value + both.jobs[1].id.value, first.value + second.value);
  EXPECT_EQ(queue("limit=1").jobs, std::vector{both.jobs[0]});
  EXPECT_EQ(desk.ask(kBob, "GET", "/api/v1/queue", {}, "limit=0").status, 400);
  EXPECT_EQ(explain(desk, kAlice, both.jobs[1].id).expected_start, both.jobs[1].expected_start)
      << "gjob why and gjob show know it, too";
}

TEST(Explain, OfOthersTellsNoSecret) {
  FakeDesk desk;
  const JobId id = desk.submit(kAlice, R"("hold":true)");
  const std::string path = "/api/v1/jobs/" + std::to_string(id.value) + "/explain";
  EXPECT_NE(desk.ask(kAlice, "GET", path).body.find("secret"), std::string::npos);
  EXPECT_EQ(desk.ask(kBob, "GET", path).body.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace gflow::server
