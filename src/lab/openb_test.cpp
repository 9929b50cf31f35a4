// SPDX-License-Identifier: Apache-2.0
#include "lab/openb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "lab/tar.h"

namespace gflow::lab {
namespace {

const std::string kOpenbFixtures = GFLOW_SOURCE_DIR "/tests/fixtures";

TEST(Openb, ReadsNodesAndTasks) {
  const auto nodes =
      read_openb_nodes("sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0000,64000,262144,2,P100\n");
  ASSERT_TRUE(nodes.has_value());
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ(nodes->front().milli_cpus, 64'000);
  EXPECT_EQ(nodes->front().memory, Memory::gib(256));
  ASSERT_EQ(nodes->front().devices.size(), 2U);
  EXPECT_EQ(nodes->front().devices.front().model, "P100");

  const auto tasks = read_openb_tasks(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\r\n"
      "a,12000,16384,1,1000,\r\n"
      "b,6000,12288,1,460,V100M16|T4\r\n"
      "c,4000,1024,0,0,\r\n"
      "d,4000,1024,4,1000\r\n");
  ASSERT_TRUE(tasks.has_value());
  ASSERT_EQ(tasks->size(), 4U);
  EXPECT_EQ((*tasks)[0].mode, GpuMode::Whole);
  EXPECT_EQ((*tasks)[1].mode, GpuMode::Fraction);
  EXPECT_EQ((*tasks)[1].share, Share::milli(460));
  EXPECT_EQ((*tasks)[1].models, (std::vector<std::string>{"T4", "V100M16"}));
  EXPECT_EQ(parts_of((*tasks)[2]), 0);
  EXPECT_EQ(parts_of((*tasks)[3]), 40'000);
}

TEST(Openb, RefusesWhatIsNotATable) {
  EXPECT_FALSE(read_openb_nodes("sn\nopenb-node-0000,64000\n").has_value());
  EXPECT_FALSE(read_openb_nodes("sn\nn,many,262144,2,P100\n").has_value());
  EXPECT_FALSE(read_openb_tasks("name\na,1,1,-,1000\n").has_value());
  EXPECT_FALSE(read_published("workload\nopenb_pod_list_default,06-FGD,1.3,42,6212,1\n"));
  EXPECT_FALSE(read_arrival_order("3 2\n0\n1\n").has_value());
  EXPECT_FALSE(read_arrival_order("").has_value());
  EXPECT_FALSE(load_openb(kOpenbFixtures, "no-such-trace").has_value());
  EXPECT_FALSE(load_arrival_order(kOpenbFixtures, "default", 99).has_value());
}

TEST(Openb, HasThePublishedCut) {
  const auto openb = load_openb(kOpenbFixtures, "default");
  ASSERT_TRUE(openb.has_value());
  EXPECT_EQ(openb->nodes.size(), 1'213U);
  EXPECT_EQ(openb->capacity(), std::int64_t{6'212} * Share::kWholeParts);
  const placement::Profile profile = openb->profile();
  EXPECT_EQ(profile.classes.size(), 91U);
  EXPECT_EQ(profile.typical, 35U);
}

TEST(ArrivalOrder, IsDrawnFromTheSeedAlone) {
  const auto openb = load_openb(kOpenbFixtures, "default");
  ASSERT_TRUE(openb.has_value());
  const ArrivalOrder order = draw_arrival_order(*openb, 7);
  EXPECT_EQ(order.tasks, draw_arrival_order(*openb, 7).tasks);
  EXPECT_NE(order.tasks, draw_arrival_order(*openb, 8).tasks);
  std::vector<std::int32_t> ranks = order.ranks;
  std::ranges::sort(ranks);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ASSERT_EQ(ranks[i], static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> all(order.tasks.begin(), order.tasks.begin() + 8'152);
  std::ranges::sort(all);
  EXPECT_TRUE(std::ranges::adjacent_find(all) == all.end());  // each task once, then drawn ones
  std::int64_t arrived = 0;
  for (const std::int32_t row : order.tasks) {
    arrived += parts_of(openb->tasks[static_cast<std::size_t>(row)]);
  }
  const double load = static_cast<double>(arrived) / static_cast<double>(openb->capacity());
  EXPECT_LE(load, 1.3);
  EXPECT_GT(load, 1.298);
}

TEST(Tar, FindsAFile) {
  const auto header = [](const std::string& name, const std::string& size) {
    std::string record(512, '\0');
    std::ranges::copy(name, record.begin());
    std::ranges::copy(size, record.begin() + 124);
    return record;
  };
  std::string first(512, '\0');
  first.replace(0, 5, "hello");
  const std::string archive = header("a.42", "00000000005") + first +
                              header("b.42", "00000000003") + "xyz" + std::string(509, '\0') +
                              std::string(1024, '\0');
  EXPECT_EQ(tar_member(archive, "a.42"), "hello");
  EXPECT_EQ(tar_member(archive, "b.42"), "xyz");
  EXPECT_EQ(tar_member(archive, "c.42"), std::nullopt);
  EXPECT_EQ(tar_member(archive.substr(0, 600), "b.42"), std::nullopt);
  EXPECT_EQ(tar_member("", "b.42"), std::nullopt);
}

}  // namespace
}  // namespace gflow::lab
