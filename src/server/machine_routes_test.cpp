// SPDX-License-Identifier: Apache-2.0
// What of the machine and of many jobs can be asked for: nodes, devices, groups, statistics.
#include <gtest/gtest.h>

#include "api/group.h"
#include "api/machine_parts.h"
#include "api/statistics.h"
#include "server/fake_desk.h"

namespace gflow::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::string> names_of(const api::NodeList& list) {
  std::vector<std::string> names;
  for (const api::NodeStateView& view : list.nodes) names.push_back(view.node.name);
  return names;
}

TEST(Nodes, AreThoseAskedFor) {
  FakeDesk desk;
  Machine second = desk.service.state().nodes().at("lab1").machine;
  second.name = "lab2";
  second.labels = {{"zone", "a"}};
  (void)desk.service.apply(engine::event::NodesChanged{{second}});
  (void)desk.service.apply(engine::event::Drain{{"lab1", {}, "fan", "root"}, false, kRoot});
  const auto list = [&desk](const std::string& query) {
    return names_of(desk.read(desk.ask(kBob, "GET", "/api/v1/nodes", "", query), api::read_nodes));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(list(""), (Names{"lab1", "lab2"}));
  EXPECT_EQ(list("ready=true"), (Names{"lab2"}));
  EXPECT_EQ(list("drained=true"), (Names{"lab1"}));
  EXPECT_EQ(list("label=zone%3Da"), (Names{"lab2"}));
  EXPECT_EQ(list("name=*2,other"), (Names{"lab2"}));
  const Reply one = desk.ask(kBob, "GET", "/api/v1/nodes/lab1");
  const api::NodeStateView node = desk.read(one, api::read_node);
  EXPECT_TRUE(node.node.drained && !node.ready());
  EXPECT_EQ(node.node.devices.size(), 2U);
  EXPECT_NE(one.body.find(R"("ready":false)"), std::string::npos);
  const Reply none = desk.ask(kBob, "GET", "/api/v1/nodes/lab3");
  EXPECT_EQ(none.status, 404);
  EXPECT_NE(none.body.find("did you mean 'lab"), std::string::npos) << none.body;
  EXPECT_EQ(desk.ask(kBob, "GET", "/api/v1/nodes", "", "ready=perhaps").status, 400);
}

TEST(Devices, AreKnownWhereThereAreNoneAndNotWhereTheirDriverIsMissing) {
  struct Case {
    const char* source;
    const char* note;
    int status;
    const char* health;
  };
  const Case cases[] = {
      {"none", "no devices are wanted (--devices none)", 200, R"("status":"healthy")"},
      {"none", "libnvidia-ml.so.1 is not there", 200, R"("problems":[])"},
      {"nvml", "libnvidia-ml.so.1 is not there", 503, R"("status":"unhealthy")"}};
  for (const Case& c : cases) {
    FakeDesk desk;
    Machine machine = desk.service.state().nodes().at("lab1").machine;
    machine.devices.clear();
    machine.topology = {};
    machine.source = c.source;
    machine.note = c.note;
    (void)desk.service.apply(engine::event::NodesChanged{{machine}});
    for (const char* path : {"status", "nodes", "monitoring"}) {
      const Reply reply = desk.ask(kBob, "GET", std::string("/api/v1/gpu/") + path);
      EXPECT_EQ(reply.status, c.status) << reply.body;
      EXPECT_EQ(reply.body.contains(c.note), c.status != 200) << reply.body;
    }
    const Reply health = desk.ask(kBob, "GET", "/api/v1/gpu/health");
    EXPECT_EQ(health.status, c.status);
    EXPECT_TRUE(health.body.contains(c.health)) << health.body;
  }
}

TEST(Devices, AreThoseAskedForAndHaveTheirJobs) {
  FakeDesk desk;
  Machine machine = desk.service.state().nodes().at("lab1").machine;
  machine.devices.at(1).uuid = "GPU-b";
  (void)desk.service.apply(engine::event::NodesChanged{{machine}});
  const JobId id = desk.submit(kAlice, R"("request":{"gpus":1})");
  const auto list = [&desk](const std::string& query) {
    return desk.read(desk.ask(kBob, "GET", "/api/v1/devices", "", query), api::read_devices)
        .devices;
  };
  ASSERT_EQ(list("").size(), 2U);
  const auto taken = list("available=false");
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].device.jobs, std::vector{id});
  EXPECT_EQ(taken[0].node, "lab1");
  EXPECT_EQ(list("model=A100").size(), 0U);
  EXPECT_EQ(list("model=A100,H100&node=lab*").size(), 2U);
  EXPECT_EQ(desk.ask(kBob, "GET", "/api/v1/devices", "", "model=fast").status, 400);
  EXPECT_EQ(desk.ask(kBob, "GET", "/api/v1/devices/GPU-b").status, 200);
  EXPECT_EQ(desk.ask(kBob, "GET", "/api/v1/devices/GPU-c").status, 404);
  const auto topology = desk.read(desk.ask(kBob, "GET", "/api/v1/topology"), api::read_topology);
  ASSERT_EQ(topology.nodes.size(), 1U);
  EXPECT_EQ(topology.nodes[0].gpu_indices, (std::vector{0, 1}));
}

TEST(Groups, CountTheStatesOfTheirJobs) {
  FakeDesk desk;
  for (int i = 0; i < 3; ++i) {
    (void)desk.submit(kAlice, R"("group":"sweep","max_concurrent":1)");
  }
  (void)desk.submit(kBob, R"("group":"sweep","hold":true)");
  (void)desk.submit(kBob, R"("group":"array","hold":true)");
  (void)desk.submit(kBob, R"("hold":true)");
  desk.service.end(JobId(1), Outcome{.run_time = seconds(5)});
  const auto list = [&desk](const std::string& query) {
    return desk.read(desk.ask(kAlice, "GET", "/api/v1/groups", "", query), api::read_group_page);
  };
  const auto all = list("").groups;
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].name, "array");
  EXPECT_EQ(all[1].user.name, "alice");
  EXPECT_EQ(all[1].max_concurrent, 1);
  EXPECT_EQ(all[1].jobs, 3U);
  EXPECT_EQ(all[1].states.of(Status::Finished), 1U);
  EXPECT_EQ(all[1].states.of(Status::Running), 1U);
  EXPECT_EQ(all[1].states.of(Status::Queued), 1U);
  EXPECT_EQ(all[1].first_job, JobId(1));
  EXPECT_EQ(all[1].last_job, JobId(3));
  EXPECT_EQ(list("state=Running,Finished").groups.size(), 1U);
  EXPECT_EQ(list("name=arr*").groups.size(), 1U);
  std::vector<std::string> seen;
  for (std::string after;;) {
    const auto page = list("limit=1" + (after.empty() ? "" : "&after=" + after));
    ASSERT_EQ(page.groups.size(), 1U);
    seen.push_back(page.groups[0].name + " of " + page.groups[0].user.name);
    if (page.next.empty()) break;
    after = page.next;
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"array of bob", "sweep of alice", "sweep of bob"}));
  EXPECT_EQ(desk.ask(kAlice, "GET", "/api/v1/groups", "", "after=7").status, 400);
}

TEST(Groups, OfOneNameAreToldApartByTheirOwner) {
  FakeDesk desk;
  (void)desk.submit(kAlice, R"("group":"sweep")");
  const auto owner = [&desk](const Principal& caller, const std::string& query) {
    const Reply reply = desk.ask(caller, "GET", "/api/v1/groups/sweep", "", query);
    const auto group = api::read_group(reply.body);
    return group ? group->user.name : std::to_string(reply.status);
  };
  EXPECT_EQ(owner(kBob, ""), "alice") << "there is no other";
  (void)desk.submit(kBob, R"("group":"sweep")");
  EXPECT_EQ(owner(kBob, ""), "bob");
  EXPECT_EQ(owner(kBob, "user=alice"), "alice");
  EXPECT_EQ(owner(kRoot, ""), "400");
  EXPECT_EQ(owner(kBob, "user=carol"), "404");
}

TEST(Statistics, AreOfWhatEndedInATime) {
  FakeDesk desk;
  // Two GPUs: the second job waits 100 s for the first.
  const JobId first = desk.submit(kAlice, R"("request":{"gpus":2},"project":"p")");
  const JobId second = desk.submit(kBob, R"("request":{"gpus":1})");
  desk.service.advance(seconds(100));
  desk.service.end(first, Outcome{.run_time = seconds(100), .cpu_time = seconds(7)});
  const WallTime middle = desk.service.now().wall;
  desk.service.advance(seconds(50));
  desk.service.end(second, Outcome{.exit_code = 1, .run_time = seconds(50)});
  (void)desk.submit(kBob, R"("request":{"gpus":1})");
  const auto ask = [&desk](const std::string& query) {
    return desk.read(desk.ask(kAlice, "GET", "/api/v1/statistics", "", query),
                     api::read_statistics);
  };
  const api::StatisticsView all = ask("by=user");
  EXPECT_EQ(all.total.waits.count, 2U);
  EXPECT_EQ(all.total.waits.median, seconds(0));
  EXPECT_EQ(all.total.waits.p90, seconds(100));
  EXPECT_EQ(all.total.run_times.mean, seconds(75));
  EXPECT_EQ(all.total.gpu_seconds, 250);
  EXPECT_EQ(all.total.cpu_seconds, 7);
  EXPECT_EQ(all.total.gpus_held, 1);
  EXPECT_EQ(all.total.states.of(Status::Finished), 1U);
  EXPECT_EQ(all.total.states.of(Status::Failed), 1U);
  EXPECT_EQ(all.total.states.of(Status::Running), 1U);
  EXPECT_EQ(all.known_since, std::nullopt) << "all there were";
  ASSERT_EQ(all.parts.size(), 2U);
  EXPECT_EQ(all.parts[0].name, "alice");
  EXPECT_EQ(all.parts[1].run_times.most, seconds(50));
  const api::StatisticsView late = ask("since=" + rfc3339(middle + seconds(1)));
  EXPECT_EQ(late.total.run_times.count, 1U);
  EXPECT_EQ(late.total.gpu_seconds, 49);
  EXPECT_TRUE(late.parts.empty());
  EXPECT_EQ(ask("until=" + rfc3339(middle)).total.run_times.count, 0U) << "not at its end";
  EXPECT_EQ(ask("project=p").total.gpu_seconds, 200);
  EXPECT_EQ(ask("until=" + rfc3339(middle)).total.run_times.median, std::nullopt);
  const auto status = [&desk](const std::string& query) {
    return desk.ask(kAlice, "GET", "/api/v1/statistics", "", query).status;
  };
  EXPECT_EQ(status("by=day"), 400);
  const std::string from = rfc3339(middle);
  EXPECT_EQ(status("since=" + from + "&until=" + from), 400);
  EXPECT_EQ(status("since=" + from + "&until=" + rfc3339(middle + seconds(1))), 200);
}

TEST(Statistics, CountTheGpuTimeThatWasHeldInATime) {
  FakeDesk desk;
  const WallTime begin = desk.service.now().wall;
  const JobId job = desk.submit(kAlice, R"("request":{"gpus":2})");
  const auto held = [&desk, begin](int since, std::optional<int> until = {}) {
    std::string query = "since=" + rfc3339(begin + seconds(since));
    if (until) query += "&until=" + rfc3339(begin + seconds(*until));
    return desk.read(desk.ask(kAlice, "GET", "/api/v1/statistics", "", query), api::read_statistics)
        .total.gpu_seconds;
  };
  desk.service.advance(seconds(100));
  EXPECT_EQ(held(0), 200) << "it runs";
  EXPECT_EQ(held(70), 60);
  EXPECT_EQ(held(20, 50), 60);
  EXPECT_EQ(held(100), 0);
  desk.service.end(job, Outcome{.run_time = seconds(100)});
  desk.service.advance(seconds(50));
  EXPECT_EQ(held(0), 200);
  EXPECT_EQ(held(70), 60) << "it ended in the time, and held them before, too";
  EXPECT_EQ(held(20, 50), 60) << "it ended later";
  EXPECT_EQ(held(120), 0);
}

TEST(Statistics, SumsHaveThreeDigits) {
  FakeDesk desk;
  for (int i = 0; i < 10; ++i) {
    const JobId job = desk.submit(kAlice, R"("request":{"gpus":1})");
    desk.service.advance(milliseconds(1100));
    desk.service.end(job, Outcome{.run_time = milliseconds(1100), .cpu_time = milliseconds(1100)});
  }
  const std::string body = desk.ask(kAlice, "GET", "/api/v1/statistics").body;
  EXPECT_TRUE(body.contains(R"("gpu_seconds":11,"cpu_seconds":11,)")) << body;
}

}  // namespace
}  // namespace gflow::server
