// SPDX-License-Identifier: Apache-2.0
// What is shown of jobs and of the machine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/json.h"
#include "server/fake_desk.h"

namespace gflow::server {
namespace {

TEST(Views, SayHowLongAJobRanAndHowItEnded) {
  FakeDesk desk;
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
  FakeDesk desk;
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

TEST(Drains, AnIndexBesideAUuidIsOfTheSameGpu) {
  FakeDesk desk;
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

}  // namespace
}  // namespace gflow::server
