// SPDX-License-Identifier: Apache-2.0
// What is told of GPUs over REST, and who gets some.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "api/gpu_resources.h"
#include "core/stop.h"
#include "server/fake_desk.h"

namespace gflow::server {
namespace {

/// What would hold the GPUs is not run here, and need not be there.
struct Helpers {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a test has one thread
  Helpers() { (void)::setenv("GFLOW_LIBEXEC", "/libexec", 1); }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): as above
  ~Helpers() { (void)::unsetenv("GFLOW_LIBEXEC"); }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
};

api::GpuAllocation allocate(FakeDesk& desk,
                            const std::string& need,
                            const std::string& key = "",
                            const std::string& route = "allocate") {
  const Helpers helpers;
  const auto reply = desk.ask(
      kAlice,
      {.method = "POST", .path = "/api/v1/gpu/" + route, .idempotency_key = key, .body = need});
  EXPECT_TRUE(reply && (reply->status == 200 || reply->status == 202)) << reply->body;
  return desk.read(*reply, api::read_gpu_allocation);
}

void set_gpus(FakeDesk& desk, const std::vector<Memory>& sizes) {
  const auto count = static_cast<int>(sizes.size());
  Machine machine = machine_with_gpus("lab1", count, "NVIDIA A100", Memory::gib(80));
  for (std::size_t i = 0; i < sizes.size(); ++i) machine.devices[i].memory_total = sizes[i];
  (void)desk.service.apply(engine::event::NodesChanged{{machine}});
}

TEST(Allocations, ThatAreRefusedLeaveNothingAndAreNotRemembered) {
  for (const std::string key : {"", "a-key"}) {
    FakeDesk desk;
    const JobId holds = allocate(desk, R"({"gpu_count":2})").allocation_id;
    ASSERT_TRUE(holds.is_set());
    const auto refused = allocate(desk, R"({"gpu_count":1})", key);
    EXPECT_FALSE(refused.success);
    EXPECT_FALSE(refused.allocation_id.is_set());
    EXPECT_NE(refused.error_message, "");
    EXPECT_EQ(desk.service.state().list({}).size(), 1U) << "no job is left of it";
    desk.service.end(holds, {});
    const auto given = allocate(desk, R"({"gpu_count":1})", key);
    EXPECT_TRUE(given.success) << given.error_message;
  }
}

/// The fake service says of every running job that it is kept from GPUs of others.
TEST(Allocations, ForAProcessOfAJobThatCouldNotOpenThemAreRefused) {
  FakeDesk desk;
  const Helpers helpers;
  const Principal own{.name = "own", .uid = ::geteuid(), .projects = {}};
  const auto ask = [&](std::string_view more) {
    const std::string need = R"({"gpu_count":1)" + std::string(more) + "}";
    return desk.ask(own, {.method = "POST", .path = "/api/v1/gpu/allocate", .body = need});
  };
  const auto running = ask("");
  ASSERT_TRUE(running && running->status == 200U);
  desk.service.owner = desk.read(*running, api::read_gpu_allocation).allocation_id;
  const std::string pid = R"(,"pid":)" + std::to_string(::getpid());
  const auto refused = ask(pid);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 409U);
  EXPECT_NE(refused->body.find("cannot open GPUs that it was not given"), std::string::npos)
      << refused->body;
  desk.service.owner.reset();
  const auto outside = ask(pid);
  EXPECT_TRUE(outside && outside->status == 200U);
}

TEST(Allocations, ThatEndNowAreNotRenewedInVain) {
  FakeDesk desk;
  const JobId id = allocate(desk, R"({"gpu_count":1,"ttl_seconds":2})").allocation_id;
  const std::string path = "/api/v1/gpu/allocations/" + std::to_string(id.value) + "/renew";
  const auto renew = [&] { return desk.ask(kAlice, "POST", path, R"({"ttl_seconds":2})"); };
  desk.service.advance(std::chrono::seconds(1));
  EXPECT_EQ(renew().status, 200) << "it ends at 3 s from now on";
  desk.service.advance(std::chrono::milliseconds(1600));
  const Reply late = renew();
  EXPECT_EQ(late.status, 409) << late.body;
  desk.service.advance(std::chrono::seconds(1));
  EXPECT_EQ(renew().status, 409);
}

TEST(GpuNodes, AreAnEntryForEachModelAndMemory) {
  FakeDesk desk;
  set_gpus(desk, {Memory::gib(80), Memory::gib(40), Memory::gib(80)});
  const Reply reply = desk.ask(kBob, "GET", "/api/v1/gpu/status");
  const std::size_t larger = reply.body.find(R"("memory_per_gpu":80)");
  const std::size_t smaller = reply.body.find(R"("memory_per_gpu":40)");
  ASSERT_TRUE(larger < smaller && smaller != std::string::npos) << reply.body;
  EXPECT_LT(reply.body.find(R"("gpus":[0,2])"), smaller) << reply.body;
  EXPECT_GT(reply.body.find(R"("gpus":[1])"), smaller) << reply.body;
}

TEST(GpuNodes, HaveSoManyGpusOfASize) {
  FakeDesk desk;
  set_gpus(desk, {Memory::gib(80), Memory::gib(40), Memory::gib(80)});
  const std::string need = R"({"gpu_count":3,"gpu_type":"A100","memory_gb":80})";
  const Reply reply = desk.ask(kAlice, "POST", "/api/v1/gpu/validate", need);
  EXPECT_NE(reply.body.find("with 80G of memory each and this machine has 2"), std::string::npos)
      << reply.body;
}

TEST(GpuNeed, AMistakeNamesItsField) {
  FakeDesk desk;
  const std::pair<std::string, std::string> cases[] = {
      {R"({"gpu_type":"V100|fast"})", "gpu_type"},
      {R"({"gpu_type":"V100,A100"})", "gpu_type"},
      {R"({"gpu_type":"\u001b31m"})", "gpu_type"},
      {R"({"memory_gb":0.0001})", "memory_gb"},
      {R"need({"gpus":"1(fast)"})need", "gpus"},
      {R"({"gpus":"1","gpu_count":2})", "gpus"},
      {R"({"pid":2000000000})", "pid"},
      {R"({"wait":true,"wait_pid":2000000000})", "wait_pid"},
      {R"({"allocation_id":9999})", "allocation_id"},
  };
  for (const auto& [need, field] : cases) {
    const Reply reply = desk.ask(kAlice, "POST", "/api/v1/gpu/allocate", need);
    EXPECT_EQ(reply.status, field.ends_with("id") ? 404 : 400) << need;
    EXPECT_NE(reply.body.find(R"("errors":[{"pointer":"/)" + field + R"(")"), std::string::npos)
        << reply.body;
  }
}

TEST(GpuNeed, WhatIsNotGivenIsNotValid) {
  FakeDesk desk;
  const std::pair<std::string, std::string> cases[] = {
      {R"({"gpu_type":"V100|fast"})", "gpu_type: 'fast' is not a model of GPUs"},
      {R"({"memory_gb":0.0001})", "memory_gb: 0.0001 is less than 1 MiB"},
      {R"({"pid":2000000000})", "pid: there is no process 2000000000"},
      {R"({"wait":true,"wait_pid":2000000000})", "wait_pid: there is no process 2000000000"},
      {R"({"allocation_id":9999})", "allocation_id: there is no allocation 9999"},
  };
  for (const auto& [need, why] : cases) {
    const Reply reply = desk.ask(kAlice, "POST", "/api/v1/gpu/validate", need);
    EXPECT_EQ(reply.status, 200) << need;
    EXPECT_NE(reply.body.find(R"("valid":false,"available":false,"error_message":")" + why),
              std::string::npos)
        << reply.body;
  }
}

TEST(GpuCleanup, IsOfEveryAllocationOnTheNode) {
  FakeDesk desk;
  const JobId without = allocate(desk, R"({"gpus":"0"})").allocation_id;
  ASSERT_TRUE(without.is_set());
  const auto is_told_to_end = [&] {
    return stop_of(*desk.service.state().find(without)) != nullptr;
  };
  EXPECT_EQ(desk.ask(kAlice, "DELETE", "/api/v1/gpu/cleanup/lab1", "", "gpu_count=1").status, 404);
  EXPECT_FALSE(is_told_to_end());
  // Answered once it has ended, which it does not here.
  (void)desk.ask(kAlice, "DELETE", "/api/v1/gpu/cleanup/lab1");
  EXPECT_TRUE(is_told_to_end());
}

TEST(FrameworkSetup, IsForTheGpuWithTheLeastMemory) {
  FakeDesk desk;
  set_gpus(desk, {Memory::gib(80), Memory::gib(40)});
  const auto given = allocate(desk, R"({"gpu_count":2})", "", "setup-tensorflow");
  ASSERT_TRUE(given.gpu_config && given.tensorflow_config);
  EXPECT_EQ(given.gpu_config->memory_gb, 40);
  EXPECT_EQ(given.tensorflow_config->memory_limit_mb, 36864);
}

TEST(FrameworkSetup, OfAShareIsAsLargeAsTheShare) {
  FakeDesk desk;
  set_gpus(desk, {Memory::gib(32)});
  const auto flow = allocate(desk, R"({"compute_ratio":0.25})", "", "setup-tensorflow");
  ASSERT_TRUE(flow.gpu_config && flow.tensorflow_config);
  EXPECT_EQ(flow.gpu_config->memory_gb, 8);
  EXPECT_EQ(flow.tensorflow_config->memory_limit_mb, 7372);
  const auto torch = allocate(desk, R"({"compute_ratio":0.25})", "", "setup-pytorch");
  ASSERT_TRUE(torch.pytorch_config);
  EXPECT_EQ(torch.pytorch_config->memory_fraction, 0.225);
}

Reply refused(FakeDesk& desk, const std::string& need, const std::string& route) {
  const Helpers helpers;
  const auto reply = desk.ask(
      kAlice,
      {.method = "POST", .path = "/api/v1/gpu/" + route, .idempotency_key = "a-key", .body = need});
  return reply ? *reply : Reply{};
}

TEST(GpuNeeds, ThatRoundToNothingAreRefused) {
  const std::string part = "what the framework may take of each GPU's memory is less than ";
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"allocate", R"({"compute_ratio":1e-9})", "/compute_ratio: must be from 0.0001 to 1"},
      {"validate", R"({"compute_ratio":0.00009})", "/compute_ratio: must be from 0.0001 to 1"},
      {"allocate", R"({"memory_gb":1e-6})", "memory_gb: 1e-06 is less than 1 MiB"},
      {"setup-tensorflow", R"({"memory_gb":0.0009765625,"compute_ratio":0.5})", part + "1 MiB"},
      {"setup-tensorflow", R"({"gpu_memory_fraction":1e-9})", part + "1 MiB"},
      {"setup-tensorflow", R"({"gpu_memory_fraction":1e-9,"wait":true})", part + "1 MiB"},
      {"setup-pytorch", R"({"gpu_memory_fraction":1e-9})", part + "0.0001"},
      {"setup-pytorch", R"({"memory_gb":0.001,"compute_ratio":0.5})", part + "0.0001"},
      {"setup-pytorch", R"({"gpu_memory_fraction":1e-9,"wait":true})", part + "0.0001"},
  };
  for (const auto& [route, need, says] : cases) {
    FakeDesk desk;
    const Reply reply = refused(desk, need, route);
    EXPECT_EQ(reply.status, 400) << need << reply.body;
    EXPECT_NE(reply.body.find(says), std::string::npos) << need << reply.body;
    EXPECT_TRUE(desk.service.state().list({}).empty()) << "nothing is held: " << need;
    EXPECT_TRUE(allocate(desk, R"({"gpu_count":1})", "a-key").success) << "nor remembered";
  }
}

TEST(GpuNeeds, OfTheLeastThereIsAreTaken) {
  FakeDesk desk;
  const auto share = allocate(desk, R"({"compute_ratio":0.0001,"memory_gb":0.01})");
  ASSERT_TRUE(share.gpu_config);
  EXPECT_EQ(share.gpu_config->compute_ratio, 0.0001);
  EXPECT_EQ(share.gpu_config->memory_gb, 0.01);
  const auto flow = allocate(desk,
                             R"({"compute_ratio":0.0001,"memory_gb":0.01,"gpu_memory_fraction":1})",
                             "",
                             "setup-tensorflow");
  ASSERT_TRUE(flow.tensorflow_config);
  EXPECT_EQ(flow.tensorflow_config->memory_limit_mb, 10);
}

}  // namespace
}  // namespace gflow::server
