// SPDX-License-Identifier: Apache-2.0
#include "os/numa.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "os/file.h"
#include "os/user.h"

namespace gflow::os {
namespace {

TEST(Numa, NodesAsTheKernelShowsThem) {
  std::string root = std::filesystem::temp_directory_path() / "gflow-numa-XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  const struct {
    const char* node;
    const char* cpus;
  } kNodes[] = {{"node10", "\n"}, {"node2", "24-47,72-95\n"}, {"node0", "0-23,48-71\n"}};
  for (const auto& one : kNodes) {
    ASSERT_TRUE(make_directories(root + "/" + one.node));
    ASSERT_TRUE(write_file(root + "/" + one.node + "/cpulist", one.cpus));
  }
  ASSERT_TRUE(make_directories(root + "/node7"));  // has no list
  ASSERT_TRUE(write_file(root + "/possible", "0-10\n"));
  EXPECT_EQ(numa_nodes(root),
            (std::vector<NumaNode>{{0, "0-23,48-71"}, {2, "24-47,72-95"}, {10, ""}}));
  std::filesystem::remove_all(root);
  EXPECT_EQ(numa_nodes(root), std::vector<NumaNode>());
}

TEST(Numa, CpusAreThoseTheProcessMayUse) {
  const std::vector<int> cpus = allowed_cpus();
  EXPECT_EQ(static_cast<int>(cpus.size()), cpu_count());
  EXPECT_TRUE(std::ranges::is_sorted(cpus));
  ASSERT_FALSE(cpus.empty());
  std::vector<int> seen;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cpus.back()), &one);
    if (::sched_setaffinity(0, sizeof one, &one) == 0) seen = allowed_cpus();
  }).join();
  EXPECT_EQ(seen, std::vector{cpus.back()});
}

}  // namespace
}  // namespace gflow::os
