// SPDX-License-Identifier: Apache-2.0
#include "slurm/facts.h"

#include <gtest/gtest.h>

namespace gflow::slurm {
namespace {

using Strings = std::vector<std::string>;

TEST(SlurmFacts, HostListsAreExpanded) {
  struct Case {
    const char* text;
    Strings hosts;
  };
  const Case cases[] = {{"", {}},
                        {"n1", {"n1"}},
                        {"n[1-3,7],gpu1", {"n1", "n2", "n3", "n7", "gpu1"}},
                        {"n[08-10]", {"n08", "n09", "n10"}},
                        {"r[1-2]n[1-2]", {"r1n1", "r1n2", "r2n1", "r2n2"}},
                        {"n[x]", {}},
                        {"n[3-1]", {}},
                        {"n[", {}}};
  for (const Case& one : cases) EXPECT_EQ(read_host_list(one.text), one.hosts) << one.text;
  EXPECT_EQ(read_host_list("n[1-99999999]").size(), 10'000U);
}

TEST(SlurmFacts, GresAreRead) {
  struct Case {
    const char* text;
    const char* kind;
    const char* type;
    std::int64_t count;
    std::vector<int> indices;
  };
  const Case cases[] = {{"gpu:v100:4", "gpu", "v100", 4, {}},
                        {"gres:gpu:2", "gpu", "", 2, {}},
                        {"gres/gpu:a100:1", "gpu", "a100", 1, {}},
                        {"gpu", "gpu", "", 1, {}},
                        {"gpu:v100:8(S:0-1)", "gpu", "v100", 8, {}},
                        {"gpu:v100:3(IDX:0-1,3)", "gpu", "v100", 3, {0, 1, 3}},
                        {"gpu:v100:0(IDX:N/A)", "gpu", "v100", 0, {}},
                        {"shard:5(IDX:0)", "shard", "", 5, {0}},
                        {"shard:2(0/10,0/10,0/10,2/10)", "shard", "", 2, {3}},
                        {"shard:v100:12(10/10,2/10)", "shard", "v100", 12, {0, 1}},
                        {"gres/gpu=1", "gpu", "", 1, {}},
                        {"gres/gpu:v100=2", "gpu", "v100", 2, {}},
                        {"cpu=3", "cpu", "", 3, {}},
                        {"gpu:1(IDX:0-9999999999)", "gpu", "", 1, {}}};
  for (const Case& one : cases) {
    const std::vector<Gres> read = read_gres(one.text);
    ASSERT_EQ(read.size(), 1U) << one.text;
    EXPECT_EQ(read[0].kind, one.kind) << one.text;
    EXPECT_EQ(read[0].type, one.type) << one.text;
    EXPECT_EQ(read[0].count, one.count) << one.text;
    EXPECT_EQ(read[0].indices, one.indices) << one.text;
  }
  EXPECT_EQ(read_gres("gpu:v100:2(IDX:0,2),shard:v100:1(IDX:3)").size(), 2U);
}

TEST(SlurmFacts, ANameIsNeitherARecordNorAField) {
  const std::string mark = "6f1c";
  const std::string format = squeue_format(mark);
  EXPECT_TRUE(format.starts_with("6f1c;%A6f1c,")) << format;
  std::string text;
  const std::string values[] = {"7",
                                "N/A",
                                "a\n6f1;JobId=8\n",
                                "ann",
                                "1000",
                                "RUNNING",
                                "None",
                                "gres:gpu:v100:2",
                                "8",
                                "2",
                                "n[1-2]",
                                "1-00:00:00",
                                "2026-11-28T12:00:00",
                                "2026-11-28T12:00:01",
                                "N/A",
                                "5:00",
                                "0",
                                "/home/ann",
                                "(null)",
                                "/dev/stdin x",
                                "physics",
                                "5"};
  text = mark + ";";
  for (const std::string& value : values) text += value + mark + ",";
  const std::vector<Job> jobs = read_squeue(text + "\n" + mark + ";cut", mark);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].id, 7U);
  EXPECT_EQ(jobs[0].name, "a\n6f1;JobId=8");
  EXPECT_EQ(jobs[0].node_names, (Strings{"n1", "n2"}));
  EXPECT_EQ(jobs[0].limit, std::chrono::hours(24));
  EXPECT_EQ(jobs[0].run_time, std::chrono::minutes(5));
  EXPECT_FALSE(jobs[0].ended);
}

TEST(SlurmFacts, ATaskIsNamedByItsArray) {
  Job job;
  job.id = 35;
  job.array = 35;
  EXPECT_EQ(name_of(job), "35");
  job.tasks = "3";  // the last one has the number of its array
  EXPECT_EQ(name_of(job), "35_3");
  job.tasks = "2-4,9%1";
  EXPECT_EQ(name_of(job), "35_[2-4,9]");
  job.tasks = "2";
  job.id = 36;
  EXPECT_EQ(name_of(job), "35_2");
}

TEST(SlurmFacts, DetailsAreTakenOfWhatIsDescribedOnce) {
  const std::string seven =
      "JobId=7 JobName=x\n   Requeue=1 Restarts=0 ExitCode=3:0\n"
      "     Nodes=n[1-2] CPU_IDs=0 Mem=10 GRES=gpu:v100:2(IDX:0-1)\n   StdOut=/home/a b/out\n\n";
  std::vector<Job> jobs(1);
  jobs[0].id = 7;
  EXPECT_TRUE(add_details(jobs, seven).empty());
  ASSERT_EQ(jobs[0].parts.size(), 2U);
  EXPECT_EQ(jobs[0].parts[1].node, "n2");
  EXPECT_EQ(jobs[0].output, "/home/a b/out");
  std::vector<Job> forged(1);
  forged[0].id = 7;
  EXPECT_EQ(add_details(forged,
                        seven + "JobId=8 JobName=y\n\nJobId=7 JobName=z\n   StdOut=/etc/passwd\n"),
            std::vector<std::uint64_t>{7});
  EXPECT_EQ(forged[0].output, "");
}

TEST(SlurmFacts, WhatIsAskedForOtherwiseThanOnEachNodeIsCounted) {
  struct Case {
    const char* lines;
    int nodes;
    std::int64_t gpus;
  };
  const Case cases[] = {{"   TresPerJob=gres:gpu:3\n", 2, 2},
                        {"   NumNodes=1 NumCPUs=6 NumTasks=3\n   TresPerTask=gres:gpu:1\n", 1, 3}};
  for (const Case& one : cases) {
    std::vector<Job> jobs(1);
    jobs[0].id = 7;
    jobs[0].nodes = one.nodes;
    (void)add_details(jobs, "JobId=7 JobName=x\n" + std::string(one.lines));
    ASSERT_EQ(jobs[0].gres.size(), 1U) << one.lines;
    EXPECT_EQ(jobs[0].gres[0].count, one.gpus) << one.lines;
  }
}

TEST(SlurmFacts, ExitsAreTakenByTheMark) {
  std::vector<Job> jobs(3);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].id = i + 1;
  add_exits(jobs, "1;6f1792;6f\n2;6f9;6f\nx;6f;6f\n", "6f");
  EXPECT_EQ(jobs[0].exit, std::pair(7, 0));
  EXPECT_EQ(jobs[1].exit, std::pair(0, 9));
  EXPECT_FALSE(jobs[2].exit);
  // Slurm 24.11.
  for (Job& job : jobs) job.exit.reset();
  add_exits(jobs, "1;6f3:0;6f\n2;6f0:9;6f\n3;6f3:;6f\n", "6f");
  EXPECT_EQ(jobs[0].exit, std::pair(3, 0));
  EXPECT_EQ(jobs[1].exit, std::pair(0, 9));
  EXPECT_FALSE(jobs[2].exit);
}

TEST(SlurmFacts, NodesAreRead) {
  const auto nodes = read_nodes(
      "NodeName=n1 CPUTot=16 Gres=gpu:v100:4(S:0),shard:v100:40 GresUsed=gpu:v100:1(IDX:0) "
      "RealMemory=64000 State=MIXED+DRAIN Partitions=main,long Reason=its fan "
      "[root@2026-11-28T12:00:00]\n");
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].cpus, 16);
  EXPECT_EQ(nodes[0].memory, Memory::mib(64'000));
  ASSERT_EQ(nodes[0].gres.size(), 2U);
  EXPECT_EQ(nodes[0].state, "MIXED+DRAIN");
  EXPECT_EQ(nodes[0].reason, "its fan");
  EXPECT_EQ(read_nodes("NodeName=n Reason=fan [left] broken [root@2026-11-28T17:59:03] Extra=x\n")
                .front()
                .reason,
            "fan [left] broken");
}

}  // namespace
}  // namespace gflow::slurm
