// SPDX-License-Identifier: Apache-2.0
#include "runner/cgroups.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "os/file.h"
#include "runner/cgroup_layout.h"

namespace gflow::runner {
namespace {

TEST(CgroupLayout, OfSystemsAsTheyAre) {
  const std::string v2 =
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  const std::string hybrid =
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "37 31 0:34 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  const struct {
    const char* name;
    std::string mounts;
    std::string groups;
    CgroupLayout layout;
  } kTable[] = {
      {"v2 under systemd",
       v2,
       "0::/system.slice/gflowd.service\n",
       {"/sys/fs/cgroup/system.slice/gflowd.service", "", "", "", ""}},
      {"v2, root", v2, "0::/\n", {"/sys/fs/cgroup", "", "", "", ""}},
      {"hybrid",
       hybrid,
       "9:name=systemd:/\n5:cpuset:/c\n4:memory:/a/b\n3:cpu,cpuacct:/\n0::/\n",
       {"/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/memory/a/b",
        "/sys/fs/cgroup/cpu,cpuacct",
        "",
        "/sys/fs/cgroup/cpuset/c"}},
      {"a container that sees its part",
       "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
       "0::/docker/abc/init\n",
       {"/sys/fs/cgroup/init", "", "", "", ""}},
      {"a group outside of what is mounted",
       "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
       "0::/docker/abcdef\n",
       {}},
      {"a group above the namespace", v2, "0::/../other\n", {}},
      {"an escaped mount point",
       "30 23 0:26 / /my\\040cgroups rw - cgroup2 cgroup2 rw\n",
       "0::/x\n",
       {"/my cgroups/x", "", "", "", ""}},
      {"nothing", "", "", {}},
      {"garbage", "a b\n - \n1 2 3 4 5 - cgroup2\n\\\n", "::\n:\n0:\n", {}},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(parse_cgroup_layout(row.mounts, row.groups), row.layout) << row.name;
  }
}

/// A tree of plain files, with the control files made beforehand where the kernel would make them.
class FakeTree : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "gflow-cgroup-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  [[nodiscard]] std::string path(const std::string& name) const { return root_ + "/" + name; }

  std::string root_;
};

TEST_F(FakeTree, WhatCannotBeJoinedIsNotUsedAndSaysWhy) {
  ASSERT_TRUE(os::make_directories(path("own")));
  const JoinProbe refuse = [](const std::string&) -> Result<void> {
    return fail(Code::Permission, "no way in");
  };
  const Cgroups cgroups({.unified = path("own"), .memory = path("own")}, "gflow-1", refuse);
  EXPECT_EQ(cgroups.enforcement().kill, "process tree (subreaper)");
  EXPECT_EQ(cgroups.enforcement().memory, "none: no way in");
  attempt::Order order;
  ASSERT_TRUE(cgroups.create("5.1", {}, order));
  EXPECT_TRUE(order.cgroups.empty());
  EXPECT_EQ(order.kill_cgroup, "");
}

TEST_F(FakeTree, WhereNothingCanBeMade) {
  const Cgroups cgroups(
      {.unified = path("missing")}, "gflow-1", [](const std::string&) { return Result<void>(); });
  EXPECT_TRUE(cgroups.enforcement().memory.starts_with("none: create the control group"));
}

TEST_F(FakeTree, ALimitThatCannotBeSetIsAnError) {
  // Nothing makes memory.limit_in_bytes here, so a promised limit cannot be kept.
  ASSERT_TRUE(os::make_directories(path("memory")));
  const JoinProbe accept = [](const std::string&) { return Result<void>(); };
  const Cgroups cgroups({.memory = path("memory")}, "gflow-1", accept);
  EXPECT_EQ(cgroups.enforcement().memory, "cgroup v1 memory.limit_in_bytes");
  attempt::Order order;
  EXPECT_FALSE(cgroups.create("5.1", {.memory = Memory::gib(1)}, order));
  EXPECT_EQ(order.memory_cgroup, path("memory/gflow-1/job-5.1"));
  EXPECT_TRUE(cgroups.create("5.2", {}, order));
  cgroups.remove_others([](const std::string& attempt) { return attempt == "5.2"; });
  EXPECT_FALSE(os::exists(path("memory/gflow-1/job-5.1")));
  EXPECT_TRUE(os::exists(path("memory/gflow-1/job-5.2")));
}

}  // namespace
}  // namespace gflow::runner
