// SPDX-License-Identifier: Apache-2.0
// What is shown of others' jobs, by level; tests/e2e/test_rights.py asks a real gflowd for the same
// at every route.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "api/account.h"
#include "api/defrag.h"
#include "api/event.h"
#include "api/explanation.h"
#include "api/queue.h"
#include "api/snapshot.h"
#include "server/fake_desk.h"
#include "server/shown.h"

namespace gflow::server {
namespace {

constexpr auto kCalled = R"("name":"swordfish","project":"swordfish","group":"swordfish",)";

Principal bob_at(OthersJobs level) {
  Principal bob = kBob;
  bob.others_jobs = level;
  return bob;
}

/// alice has both GPUs, and a job that waits; bob has one behind it.
struct Queue {
  FakeDesk desk;
  JobId runs = desk.submit(kAlice, std::string(kCalled) + R"("request":{"gpus":2})");
  JobId waits = desk.submit(kAlice, std::string(kCalled) + R"("request":{"gpus":2})");
  JobId own = desk.submit(kBob, R"("name":"mine","request":{"gpus":2})");

  std::string body(const Principal& caller,
                   const std::string& path,
                   const std::string& query = "") {
    return desk.ask(caller, "GET", path, {}, query).body;
  }
  std::vector<JobId> listed(const Principal& caller, const std::string& query) {
    std::vector<JobId> ids;
    const auto page = api::read_job_page(body(caller, "/api/v1/jobs", query));
    EXPECT_TRUE(page);
    for (const api::JobView& job : page->jobs) ids.push_back(job.id);
    return ids;
  }
};

TEST(OthersJobs, AreListedWithWhatIsShownOfThem) {
  Queue queue;
  const JobId runs = queue.runs;
  const JobId waits = queue.waits;
  const JobId own = queue.own;
  struct Case {
    std::string query;
    std::vector<JobId> all;
    std::vector<JobId> usage;
    std::vector<JobId> none;
  };
  const std::vector<Case> cases = {
      {"", {runs, waits, own}, {runs, waits, own}, {own}},
      {"user=alice", {runs, waits}, {runs, waits}, {}},
      {"job=1-3", {runs, waits, own}, {runs, waits, own}, {own}},
      {"name=sword*", {runs, waits}, {}, {}},
      {"name=mine", {own}, {own}, {own}},
      {"project=swordfish", {runs, waits}, {}, {}},
      {"group=swordfish", {runs, waits}, {}, {}},
      // What has no name that is shown goes before all that have one.
      {"sort=name", {own, runs, waits}, {runs, waits, own}, {own}},
      {"sort=priority", {runs, waits, own}, {runs, waits, own}, {own}},
      {"state=Queued", {waits, own}, {waits, own}, {own}},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(queue.listed(bob_at(OthersJobs::All), each.query), each.all) << each.query;
    EXPECT_EQ(queue.listed(bob_at(OthersJobs::Usage), each.query), each.usage) << each.query;
    EXPECT_EQ(queue.listed(bob_at(OthersJobs::None), each.query), each.none) << each.query;
    Principal boss = kOperator;
    boss.others_jobs = OthersJobs::None;
    EXPECT_EQ(queue.listed(boss, each.query), each.all) << "an operator sees all: " << each.query;
  }
}

TEST(OthersJobs, AreShownWithoutNamesOrAsOnesThatDoNotExist) {
  Queue queue;
  const std::string path = "/api/v1/jobs/" + std::to_string(queue.runs.value);
  const api::JobView usage = queue.desk.show(bob_at(OthersJobs::Usage), queue.runs);
  EXPECT_EQ(usage.spec.name + usage.spec.project + usage.spec.group, "");
  EXPECT_EQ(usage.spec.user.name, "alice");
  EXPECT_EQ(usage.spec.request.gpus, 2);
  EXPECT_EQ(usage.gpu_indices, (std::vector{0, 1}));
  EXPECT_EQ(usage.pid, 0);
  const Principal none = bob_at(OthersJobs::None);
  for (const auto* rest : {"", "/explain", "/log"}) {
    const Reply hidden = queue.desk.ask(none, "GET", path + rest);
    Reply absent = queue.desk.ask(none, "GET", std::string("/api/v1/jobs/9") + rest);
    EXPECT_EQ(hidden.status, 404);
    absent.body.replace(absent.body.find("job 9"), 5, "job 1");
    EXPECT_EQ(hidden.body, absent.body);
  }
  EXPECT_EQ(queue.desk.show(none, queue.own).spec.name, "mine");
}

TEST(OthersJobs, AreInTheQueueOnlyForWhoKnowsOfThem) {
  Queue queue;
  const auto queued = [&queue](OthersJobs level) {
    std::vector<JobId> ids;
    const auto view = api::read_queue(queue.body(bob_at(level), "/api/v1/queue"));
    EXPECT_TRUE(view);
    for (const api::QueuedJob& job : view->jobs) ids.push_back(job.id);
    std::ranges::sort(ids);
    return ids;
  };
  EXPECT_EQ(queued(OthersJobs::All), (std::vector{queue.waits, queue.own}));
  EXPECT_EQ(queued(OthersJobs::Usage), (std::vector{queue.waits, queue.own}));
  EXPECT_EQ(queued(OthersJobs::None), std::vector{queue.own});
}

/// Both of alice's jobs have half a GPU, and bob waits for a whole one.
TEST(OthersJobs, AreCountedWhereTheyWouldMove) {
  FakeDesk desk;
  const std::string half =
      R"("preemption":"requeue","request":{"gpus":1,"gpu_mode":"fraction","gpu_share_parts":5000})";
  std::vector<JobId> halves;
  for (int i = 0; i < 4; ++i) halves.push_back(desk.submit(kAlice, half));
  for (const std::size_t gone : {1U, 3U}) desk.service.end(halves.at(gone), Outcome{});
  const JobId waits = desk.submit(kBob, R"("request":{"gpus":1})");
  const auto plans = [&](const Principal& caller) {
    return desk.read(desk.ask(caller, "GET", "/api/v1/defrag"), api::read_defrag).jobs;
  };
  for (const OthersJobs level : {OthersJobs::All, OthersJobs::Usage}) {
    const auto shown = plans(bob_at(level));
    ASSERT_EQ(shown.size(), 1U);
    EXPECT_EQ(shown[0].job, waits);
    EXPECT_EQ(shown[0].outcome, DefragOutcome::Moves);
    ASSERT_EQ(shown[0].moves.size(), 1U);
    EXPECT_EQ(shown[0].moves[0].job, halves[0]);
    EXPECT_EQ(shown[0].other_moves, 0);
  }
  const auto hidden = plans(bob_at(OthersJobs::None));
  ASSERT_EQ(hidden.size(), 1U);
  EXPECT_TRUE(hidden[0].moves.empty());
  EXPECT_EQ(hidden[0].other_moves, 1);
  Principal alice = kAlice;
  alice.others_jobs = OthersJobs::None;
  EXPECT_TRUE(plans(alice).empty()) << "what waits is bob's";
  EXPECT_EQ(desk.ask(kBob, "GET", "/api/v1/defrag", {}, "limit=101").status, 400);
}

TEST(OthersJobs, NoProcessOfOneIsToldByItsNumber) {
  Queue queue;
  const DeviceProcess outside{.pid = 12, .user = "carol", .name = "python"};
  const DeviceProcess of_job{.pid = 11, .user = "alice", .name = "train", .job = queue.runs};
  const auto told_at = [&](OthersJobs level) {
    const Principal bob = bob_at(level);
    std::vector<DeviceProcess> processes = {of_job, outside};
    Shown(bob, queue.desk.service.state()).hide(processes);
    return processes;
  };
  EXPECT_EQ(told_at(OthersJobs::All), (std::vector{of_job, outside}));
  const DeviceProcess nameless{.pid = 0, .user = "alice", .job = queue.runs};
  EXPECT_EQ(told_at(OthersJobs::Usage), (std::vector{nameless, outside}));
  EXPECT_EQ(told_at(OthersJobs::None), std::vector{outside});
}

TEST(OthersJobs, NobodyLearnsByARefusalThatOneIsThere) {
  Queue queue;
  const Principal none = bob_at(OthersJobs::None);
  struct Case {
    std::string method;
    std::string path;
    std::string body;
    std::string query;
  };
  const std::vector<Case> cases = {
      {"POST", "/api/v1/jobs/cancel", R"({"jobs":[ID]})", ""},
      {"POST", "/api/v1/jobs/hold", R"({"jobs":[3,ID]})", ""},
      {"PATCH", "/api/v1/jobs", R"({"jobs":[ID],"max_retries":1})", ""},
      {"PATCH", "/api/v1/jobs/ID", R"({"name":"other"})", ""},
      {"DELETE", "/api/v1/jobs/ID", "", ""},
      {"GET", "/api/v1/gpu/allocations/ID", "", ""},
      {"PATCH", "/api/v1/jobs/3", R"({"dependencies":{"jobs":[ID]}})", ""},
      {"POST", "/api/v1/place", R"({"request":{"gpus":1},"dependencies":{"jobs":[ID]}})", ""},
      {"GET", "/api/v1/changes", "", "revision=0&job=ID"},
  };
  for (const Case& each : cases) {
    const auto told = [&](const std::string& id) {
      const auto filled = [&id](const std::string& text) {
        return std::regex_replace(text, std::regex("ID"), id);
      };
      const Reply reply = queue.desk.ask(
          none, each.method, filled(each.path), filled(each.body), filled(each.query));
      EXPECT_EQ(reply.status, 404) << each.path << ": " << reply.body;
      return std::regex_replace(reply.body, std::regex("[0-9]+"), "N");
    };
    EXPECT_EQ(told(std::to_string(queue.runs.value)), told("987654")) << each.path;
  }
}

TEST(OthersJobs, AreNotNamedWhereTheyKeepOneWaiting) {
  Queue queue;
  const std::string path = "/api/v1/jobs/" + std::to_string(queue.own.value) + "/explain";
  const auto usage = api::read_explanation(queue.body(bob_at(OthersJobs::Usage), path));
  ASSERT_TRUE(usage);
  ASSERT_FALSE(usage->job.blockers.empty());
  ASSERT_EQ(usage->job.blockers[0].holders.size(), 1U);
  EXPECT_EQ(usage->job.blockers[0].holders[0].user, "alice");
  const std::string none = queue.body(bob_at(OthersJobs::None), path);
  EXPECT_EQ(none.find("alice"), std::string::npos) << none;
  const auto told = api::read_explanation(none);
  ASSERT_TRUE(told);
  for (const api::BlockerView& blocker : told->job.blockers) {
    EXPECT_TRUE(blocker.holders.empty() && blocker.jobs.empty()) << blocker.text;
  }
}

TEST(OthersJobs, DevicesAreInUseByNobody) {
  Queue queue;
  const auto machine = api::read_machine(queue.body(bob_at(OthersJobs::None), "/api/v1/machine"));
  ASSERT_TRUE(machine);
  EXPECT_TRUE(machine->running.empty());
  const api::DeviceView& gpu = machine->nodes.at(0).devices.at(0);
  EXPECT_TRUE(gpu.jobs.empty());
  EXPECT_EQ(gpu.other_jobs, 1U);
  EXPECT_FALSE(gpu.available());
  EXPECT_EQ(queue.body(bob_at(OthersJobs::None), "/api/v1/devices", "available=true").find("uuid"),
            std::string::npos);
}

/// carol has no jobs: a limit of hers decides nothing that is shown.
TEST(OthersJobs, LimitsNameNobodyElseThanThoseWhoseJobsAreShown) {
  Queue queue;
  engine::Policy policy = queue.desk.service.state().policy();
  policy.gpu_quota.users = {{"alice", 8}, {"bob", 2}, {"carol", 1}};
  ASSERT_TRUE(queue.desk.service.apply(engine::event::Configure{policy}));
  static constexpr std::string_view kGpusOfUsers = "limits.max_gpus_of";
  const auto limits = [&queue](const Principal& caller) {
    const auto snapshot = api::read_snapshot(queue.body(caller, "/api/v1/snapshot"));
    const auto settings = api::read_settings(queue.body(caller, "/api/v1/settings"));
    std::vector<std::string> told;
    for (const Label& one : snapshot->policy) {
      if (one.key == kGpusOfUsers) told.push_back(one.value);
    }
    for (const api::SettingView& one : *settings) {
      if (one.name == kGpusOfUsers) told.push_back(one.value);
    }
    return told;
  };
  using Told = std::vector<std::string>;
  const std::string all = "alice=8, bob=2, carol=1";
  EXPECT_EQ(limits(bob_at(OthersJobs::All)), (Told{"alice=8, bob=2", all}));
  EXPECT_EQ(limits(bob_at(OthersJobs::Usage)), (Told{"alice=8, bob=2", all}));
  EXPECT_EQ(limits(bob_at(OthersJobs::None)), (Told{"bob=2", "bob=2"}));
  EXPECT_EQ(limits(kOperator), (Told{all, all}));
}

TEST(OthersJobs, EventsAreOfWhatIsShown) {
  const JobEvents events{1,
                         WallTime{},
                         {{.what = Happening::Submitted,
                           .job = JobId(1),
                           .user = {1000, "alice"},
                           .name = "swordfish"}}};
  EventJournal journal;
  journal.add(events);
  const auto told = [&journal](OthersJobs level) {
    api::EventQuery query;
    query.follow = false;
    query.filter.sight = sight_of(bob_at(level));
    std::string text;
    const auto body = journal.listen(std::move(query));
    EXPECT_TRUE(body);
    for (bool is_over = !body; !is_over;) {
      (*body)->next([&](const Piece& piece) {
        is_over = piece.bytes == nullptr;
        if (!is_over) text += *piece.bytes;
      });
    }
    return text;
  };
  EXPECT_NE(told(OthersJobs::All).find("swordfish"), std::string::npos);
  const std::string usage = told(OthersJobs::Usage);
  EXPECT_NE(usage.find("alice"), std::string::npos);
  EXPECT_EQ(usage.find("swordfish"), std::string::npos);
  EXPECT_EQ(told(OthersJobs::None).find("alice"), std::string::npos);
}

}  // namespace
}  // namespace gflow::server
