// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "core/blocker.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

using namespace std::chrono_literals;

std::vector<JobId> ids(std::uint64_t first, std::uint64_t last) {
  std::vector<JobId> list;
  for (std::uint64_t id = first; id <= last; ++id) list.emplace_back(id);
  return list;
}

blocker::Unusable foreign(int gpu) { return {gpu, "", false, "", {{4711, "bob", "python", {}}}}; }
blocker::Unusable broken(int gpu) { return {gpu, "fallen off the bus", false, "", {}}; }

blocker::Gpus gpus(int need, int available, std::vector<blocker::Unusable> unusable = {}) {
  return {need, available, "", {}, std::move(unusable)};
}

TEST(Blocker, HasACodeAndAText) {
  struct Row {
    Blocker blocker;
    std::string_view code;
    std::string_view text;
  };
  const std::vector<Row> rows = {
      {gpus(4, 1), "Resources", "Resources: Need 4 GPUs, only 1 available"},
      {gpus(1, 0), "Resources", "Resources"},
      {gpus(2, -1), "Resources", "Resources"},
      {gpus(2, 2), "Resources", "Resources"},
      {gpus(2, 1, {foreign(3)}),
       "Resources",
       "Resources: Need 2 GPUs, only 1 available; GPU 3 used outside gflow"},
      {gpus(4, 1, {foreign(2), broken(0), foreign(3)}),
       "Resources",
       "Resources: Need 4 GPUs, only 1 available; GPUs 2,3 used outside gflow; GPU 0 not usable"},
      {gpus(1, 0, {foreign(0)}), "Resources", "Resources: GPU 0 used outside gflow"},
      {gpus(1, 0, {broken(0), broken(1)}), "Resources", "Resources: GPUs 0,1 not usable"},
      {blocker::HostMemory{Memory::gib(64), Memory::gib(12), {}},
       "Resources",
       "Resources: Need 64G memory, only 12G available"},
      {blocker::HostMemory{Memory::gib(64), Memory{}, {}},
       "Resources",
       "Resources: Need 64G memory, none available"},
      {blocker::Cpus{8, 2, {}}, "Resources", "Resources: Need 8 CPUs, only 2 available"},
      {blocker::Cpus{1, 0, {}}, "Resources", "Resources: Need 1 CPU, none available"},
      {blocker::Dependency{{JobId(3), JobId(5)}, DependencyMode::All, false},
       "Dependency",
       "Dependency: 3,5"},
      {blocker::Dependency{{JobId(3), JobId(5)}, DependencyMode::Any, false},
       "Dependency",
       "Dependency: any of 3,5"},
      {blocker::Dependency{{JobId(3)}, DependencyMode::Any, false}, "Dependency", "Dependency: 3"},
      {blocker::Dependency{{JobId(3)}, DependencyMode::All, true},
       "DependencyNeverSatisfied",
       "DependencyNeverSatisfied: 3"},
      {blocker::Dependency{ids(1, 8), DependencyMode::All, false},
       "Dependency",
       "Dependency: 1,2,3,4,5,6,7,8"},
      {blocker::Dependency{ids(1, 10'000), DependencyMode::All, false},
       "Dependency",
       "Dependency: 1,2,3,4,5,6,7,8 and 9992 more"},
      {blocker::Dependency{}, "Dependency", "Dependency"},
      {blocker::OnHold{}, "Held", "JobHeldUser"},
      {blocker::OnHold{"launch failed\n3 times"}, "Held", "JobHeld: launch failed\\n3 times"},
      {blocker::BeginTime{WallTime(1772366400s)},
       "BeginTime",
       "BeginTime: 2026-03-01T12:00:00.000Z"},
      {blocker::Priority{JobId(7), {}}, "Priority", "Priority: behind job 7"},
      {blocker::Priority{}, "Priority", "Priority"},
      {blocker::GroupLimit{"sweep\x1b", 2},
       "GroupLimit",
       "GroupLimit: at most 2 of group sweep\\x1b at once"},
      {blocker::GpuLimit{Share::percent(200), Share::percent(350), Share::percent(400), {}, {}},
       "GpuLimit",
       "GpuLimit: Need 2 GPUs, its user holds 3.5 and may hold 4 at once"},
      {blocker::GpuLimit{Share::percent(600), Share{}, Share::percent(400), {}, {}},
       "GpuLimit",
       "GpuLimit: Need 6 GPUs, its user may hold 4 at once"},
      {blocker::Gang{4, 3, {}}, "Gang", "Gang: 4 jobs start together, of which 3 wait"},
      {blocker::Gang{4, 5, {}}, "Gang", "Gang: 4 jobs start together"},
      {blocker::Gang{4, 5, 3}, "Gang", "Gang: 4 jobs start together, and there is room for 3"},
      {blocker::UserLimit{1000},
       "UserLimit",
       "UserLimit: at most 1000 of its user's jobs that reserve no GPUs and no CPUs at once"},
      {blocker::LaunchBackoff{1, 1500ms},
       "LaunchBackoff",
       "LaunchBackoff: not started, try 2 in 2s"},
      {blocker::LaunchBackoff{2, 4s, "not started: fork: no memory"},
       "LaunchBackoff",
       "LaunchBackoff: not started: fork: no memory, try 3 in 4s"},
      {blocker::NodeUnhealthy{"n1", "create directory '/x': No space left on device", 1500ms},
       "NodeUnhealthy",
       "NodeUnhealthy: create directory '/x': No space left on device, next try in 2s"},
      {blocker::NodeUnhealthy{"n1", "no room", 0ms},
       "NodeUnhealthy",
       "NodeUnhealthy: no room, a launch is being tried"}};
  for (const Row& row : rows) {
    EXPECT_EQ(blocker_code(row.blocker), row.code) << row.text;
    EXPECT_EQ(blocker_text(row.blocker), row.text);
  }
}

TEST(Blocker, TheFirstOneIsTheReason) {
  EXPECT_EQ(reason_text({}), "");
  EXPECT_EQ(reason_text({blocker::OnHold{}, gpus(4, 1)}), "JobHeldUser");
}

}  // namespace
}  // namespace gflow
