// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "core/cpu_list.h"
#include "daemon/gpu_peaks.h"
#include "os/numa.h"

namespace gflow::daemon {
namespace {

DeviceProcess process(int pid, std::optional<Memory> memory) {
  return {.pid = pid, .user = "alice", .name = "python", .memory = memory};
}

/// Processes 10 to 19 are job 1's, 20 to 29 job 2's.
std::optional<JobId> owner_of(int pid) {
  if (pid < 10 || pid >= 30) return std::nullopt;
  return JobId(static_cast<std::uint64_t>(pid / 10));
}

TEST(MachineFacts, TellsJobsAndOthersApart) {
  Device device;
  device.processes = {process(10, Memory::gib(2)),
                      process(99, Memory::gib(1)),
                      process(20, Memory::gib(5)),
                      process(11, Memory::gib(3)),
                      process(21, std::nullopt),
                      process(22, Memory::gib(1))};
  device.uses = {{7, Memory::gib(9)}};  // of an older reading
  tell_jobs_apart(device, owner_of, {JobId(1), JobId(2)});
  EXPECT_EQ(device.processes, std::vector{process(99, Memory::gib(1))});
  EXPECT_EQ(device.uses, (std::vector<JobUse>{{1, Memory::gib(5)}, {2, std::nullopt}}));
}

TEST(MachineFacts, AJobThatDoesNotHoldTheDeviceIsAnother) {
  Device device;
  device.processes = {process(10, Memory::gib(2)), process(20, Memory::gib(5)), process(99, {})};
  tell_jobs_apart(device, owner_of, {JobId(1)});
  DeviceProcess intruder = process(20, Memory::gib(5));
  intruder.job = JobId(2);
  EXPECT_EQ(device.processes, (std::vector{intruder, process(99, {})}));
  EXPECT_EQ(device.uses, (std::vector<JobUse>{{1, Memory::gib(2)}}));
  // The next reading, when job 2 is gone from there.
  device.processes = {process(30, {})};
  device.processes.front().job = JobId(2);
  tell_jobs_apart(device, owner_of, {JobId(1)});
  EXPECT_EQ(device.processes, std::vector{process(30, {})});
}

TEST(MachineFacts, EveryCpuOfTheHostIsOnOneNode) {
  std::vector<int> all;
  for (const NumaCpus& node : host_cpus()) {
    const auto cpus = parse_cpu_list(node.cpus);
    ASSERT_TRUE(cpus) << node.cpus;
    EXPECT_FALSE(cpus->empty()) << node.node;
    all.insert(all.end(), cpus->begin(), cpus->end());
  }
  std::ranges::sort(all);
  EXPECT_EQ(all, os::allowed_cpus());
}

TEST(GpuPeaks, TheMostOnOneDevice) {
  Machine machine;
  machine.devices.resize(2);
  const auto see = [&](GpuPeaks& peaks, std::vector<JobUse> first, std::vector<JobUse> second) {
    machine.devices[0].uses = std::move(first);
    machine.devices[1].uses = std::move(second);
    peaks.see(machine);
  };
  GpuPeaks peaks;
  see(peaks, {{1, Memory::gib(3)}}, {{1, Memory::gib(4)}, {2, std::nullopt}});
  see(peaks, {{1, Memory::gib(1)}}, {});
  EXPECT_EQ(peaks.take(JobId(1)), Memory::gib(4));
  EXPECT_EQ(peaks.take(JobId(1)), Memory{}) << "the next attempt begins anew";
  EXPECT_EQ(peaks.take(JobId(2)), Memory{});
  EXPECT_EQ(peaks.take(JobId(3)), Memory{});
}

}  // namespace
}  // namespace gflow::daemon
