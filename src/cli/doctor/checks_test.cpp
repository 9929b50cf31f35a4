// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cli/doctor/checks.h"

#include <gtest/gtest.h>

namespace gflow::cli {
namespace {

TEST(Doctor, JudgesWhatItIsTold) {
  api::DaemonView daemon;
  daemon.version = "1.0";
  EXPECT_EQ(check_daemon(daemon, "1.0").level, Level::Ok);
  EXPECT_EQ(check_daemon(daemon, "1.1").level, Level::Warn);
  EXPECT_EQ(check_daemon(fail(Code::Unreachable, "nobody answers"), "1.0").level, Level::Fail);
  EXPECT_EQ(check_driver(true).level, Level::Ok);
  EXPECT_EQ(check_driver(false).level, Level::Warn);
  EXPECT_EQ(check_session({"alice", "user", true, false}).level, Level::Warn);
  EXPECT_EQ(check_session({"alice", "user", true, true}).level, Level::Ok);
  EXPECT_EQ(check_session({"alice", "system", true, false}).level, Level::Ok);
  EXPECT_EQ(check_session({"alice", "user", false, true}).level, Level::Warn);
}

TEST(Doctor, LooksAtWhereTheDaemonListens) {
  const WallTime now{std::chrono::days(20'000)};
  api::DaemonView daemon;
  daemon.socket = "/run/gflow/gflowd.sock";
  const auto levels = [&] {
    std::vector<Level> all;
    for (const Check& check : check_listening(daemon, now)) all.push_back(check.level);
    return all;
  };
  EXPECT_EQ(levels(), (std::vector{Level::Ok, Level::Ok}));
  for (const char* url : {"http://127.0.0.1:8000", "http://[::1]:8000"}) {
    daemon.api_url = url;
    EXPECT_EQ(levels(), (std::vector{Level::Ok, Level::Ok})) << url;
  }
  daemon.api_url = "http://0.0.0.0:8000";
  EXPECT_EQ(levels(), (std::vector{Level::Ok, Level::Fail}));
  daemon.api_url = "";
  daemon.tls_url = "https://0.0.0.0:8443";
  daemon.tls_fingerprint = "SHA256:9f86";
  const std::pair<std::chrono::days, Level> ends[] = {{std::chrono::days(365), Level::Ok},
                                                      {std::chrono::days(31), Level::Ok},
                                                      {std::chrono::days(29), Level::Warn},
                                                      {std::chrono::days(0), Level::Fail}};
  for (const auto& [left, level] : ends) {
    daemon.tls_expires = now + left;
    EXPECT_EQ(levels(), (std::vector{Level::Ok, Level::Ok, level})) << left.count();
    EXPECT_NE(check_listening(daemon, now).back().text.find("SHA256:9f86"), std::string::npos);
  }
}

TEST(Doctor, NamesTokensThatNeverExpire) {
  EXPECT_TRUE(check_tokens({}).empty());
  api::TokenView ends{.name = "ci", .user = "alice", .expires = WallTime()};
  api::TokenView stays{.name = "laptop", .user = "alice"};
  EXPECT_EQ(check_tokens({ends}).front().level, Level::Ok);
  const Check check = check_tokens({ends, stays}).front();
  EXPECT_EQ(check.level, Level::Warn);
  EXPECT_EQ(check.text, "never expire: laptop");
}

TEST(Doctor, SaysWhatMissingEnforcementCosts) {
  api::DaemonView daemon;
  daemon.enforcement_kill = "cgroup.kill";
  daemon.enforcement_memory = "none: cgroups are read-only";
  daemon.enforcement_cpu = "cgroup v2 cpu.weight";
  daemon.enforcement_processes = "cgroup v2 pids.max";
  daemon.enforcement_gpu_memory = "libgflow-share.so";
  daemon.enforcement_gpu_compute = "none: reserved";
  daemon.enforcement_gpu_isolation = "landlock";
  daemon.warnings = {"disk nearly full"};
  const std::vector<Check> checks = check_enforcement(daemon);
  ASSERT_EQ(checks.size(), 8U);
  EXPECT_EQ(checks[0].level, Level::Ok);
  EXPECT_EQ(checks[1].level, Level::Warn);
  EXPECT_NE(checks[1].advice, "");
  EXPECT_EQ(checks[4].name, "GPU memory limits");
  EXPECT_EQ(checks[4].level, Level::Ok);
  EXPECT_NE(checks[4].advice, "") << "what is not held to them";
  EXPECT_EQ(checks[5].name, "GPU compute shares");
  EXPECT_EQ(checks[5].level, Level::Warn);
  EXPECT_NE(checks[5].advice, "");
  daemon.enforcement_gpu_compute = "libgflow-share.so";
  EXPECT_EQ(check_enforcement(daemon)[5].level, Level::Ok);
  EXPECT_EQ(checks[6].name, "GPU isolation");
  EXPECT_EQ(checks[6].level, Level::Ok);
  EXPECT_NE(checks[6].advice, "") << "what is not kept";
  daemon.enforcement_gpu_isolation = "none: no root";
  EXPECT_EQ(check_enforcement(daemon)[6].level, Level::Warn);
  daemon.mode = "user";
  EXPECT_EQ(check_enforcement(daemon)[6].level, Level::Ok) << "nobody else is there";
  daemon.enforcement_gpu_isolation = "landlock; not of jobs on GPU 0-1: what opens it is not known";
  const Check open = check_enforcement(daemon)[6];
  EXPECT_EQ(open.level, Level::Warn) << "it was asked for";
  EXPECT_NE(open.advice.find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  EXPECT_EQ(checks[7], (Check{"daemon warning", Level::Warn, "disk nearly full", ""}));
  for (const char* how : {"gflow-park", "none: the driver is old"}) {
    daemon.enforcement_parking = how;
    const Check parking = check_enforcement(daemon)[7];
    EXPECT_EQ(parking.name, "GPU memory of suspended jobs");
    EXPECT_EQ(parking.level, Level::Ok);
    EXPECT_EQ(parking.text, how);
    EXPECT_NE(parking.advice, "");
  }
}

TEST(Doctor, LooksAtTheDisk) {
  const auto space = [](std::uint64_t bytes) {
    return check_state({"/s", "", bytes}).back().level;
  };
  EXPECT_EQ(space(1ULL << 40), Level::Ok);
  EXPECT_EQ(space(500ULL << 20), Level::Warn);
  EXPECT_EQ(space(1ULL << 20), Level::Fail);
  EXPECT_EQ(check_state({"/s", "nfs", {}}).front().level, Level::Fail);
}

TEST(Doctor, LooksAtTheBackups) {
  EXPECT_EQ(check_backups({}).level, Level::Warn);
  EXPECT_EQ(check_backups({"/s/gflow.db.backup-x", std::chrono::minutes(35), 3}),
            (Check{"backups", Level::Ok, "3 kept, the newest 35m old: /s/gflow.db.backup-x", ""}));
  EXPECT_EQ(check_backups({"/s/x", std::chrono::hours(200), 3}).level, Level::Warn);
}

TEST(Doctor, LooksAtEachGpu) {
  api::NodeView node;
  EXPECT_EQ(check_gpus(node).front().level, Level::Warn);
  node.devices.resize(3);
  node.devices[1].device.usable = false;
  node.devices[1].device.trouble = "lost";
  node.devices[2].foreign = {{7, "", "", {}}};
  const std::vector<Check> checks = check_gpus(node);
  ASSERT_EQ(checks.size(), 3U);
  EXPECT_EQ(checks[0].level, Level::Ok);
  EXPECT_EQ(checks[1].level, Level::Fail);
  EXPECT_EQ(checks[2].level, Level::Warn);
  EXPECT_EQ(exit_code_of(checks), 1);
  EXPECT_EQ(exit_code_of({checks[0], checks[2]}), 0);
}

TEST(Doctor, PrintsALineForEach) {
  const std::vector<Check> checks = {{"daemon", Level::Ok, "answers", ""},
                                     {"disk space", Level::Warn, "0.5 GiB free", "make room"}};
  EXPECT_EQ(checks_text(checks, Painter()),
            "ok    daemon              answers\n"
            "warn  disk space          0.5 GiB free\n"
            "                          make room\n");
  EXPECT_EQ(checks_json({checks[0]}),
            "{\"apiVersion\":\"gflow/v1\",\"kind\":\"Doctor\",\"checks\":[{\"name\":\"daemon\","
            "\"level\":\"ok\",\"text\":\"answers\",\"advice\":\"\"}]}\n");
}

}  // namespace
}  // namespace gflow::cli
