// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lab/replay.h"
#include "lab/trace.h"

namespace gflow::lab {
namespace {

using namespace std::chrono_literals;

constexpr const char* kHeader =
    "JobID|User|Submit|Eligible|Start|End|State|Timelimit|ElapsedRaw|AllocTRES\n";

TEST(Sacct, ReadsRunsOfGpus) {
  const auto trace = read_trace(
      std::string(kHeader) +
          "12|ann|2026-03-01T10:00:00|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-02T12:05:00|"
          "COMPLETED|2-00:00:00|93600|billing=8,cpu=8,gres/gpu:v100=2,gres/gpu=2,mem=32G,node=1\n"
          "12.batch||2026-03-01T10:05:00||2026-03-01T10:05:00|2026-03-02T12:05:00|COMPLETED||93600|"
          "cpu=8,gres/gpu=2,mem=32G,node=1\n"
          "13_4|bob|2026-03-01T09:00:00|2026-03-01T09:30:00|2026-03-01T11:00:00|Unknown|RUNNING|"
          "UNLIMITED|60|gres/gpu=16,node=2\n"
          "14|bob|2026-03-01T09:00:00|2026-03-01T09:00:00|None|Unknown|PENDING|00:10:00|0|\n"
          "15_[1-9]|bob|2026-03-01T09:00:00|Unknown|Unknown|Unknown|PENDING|00:10:00|0|\n"
          "16|bob|2026-03-01T09:00:00|2026-03-01T09:00:00|2026-03-01T09:00:00|2026-03-01T09:01:00|"
          "FAILED|00:10:00|60|cpu=1,node=1\n"
          "17|bob|2026-03-01T09:00:00|2026-03-01T09:00:00|2026-03-01T09:00:00|2026-03-01T09:01:00|"
          "CANCELLED by 1000|00:10:00|60|cpu=1,gres/shard=4,node=1\r\n",
      "jobs.txt");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->jobs.size(), 2U);
  const TraceJob& waited = trace->jobs[0];
  EXPECT_EQ(waited.spec.user.name, "bob");
  EXPECT_EQ(waited.submitted, 0s) << "from when on it could start";
  EXPECT_EQ(waited.started, 90min);
  EXPECT_EQ(waited.run_time, 60s);
  EXPECT_EQ(waited.spec.request.nodes, 2);
  EXPECT_EQ(waited.spec.request.gpus, 8);
  EXPECT_FALSE(waited.spec.time_limit);
  const TraceJob& other = trace->jobs[1];
  EXPECT_EQ(other.submitted, 30min);
  EXPECT_EQ(other.started, 35min);
  EXPECT_EQ(other.run_time, 26h);
  EXPECT_EQ(other.spec.request.gpus, 2);
  EXPECT_EQ(other.spec.time_limit, 48h);
  EXPECT_EQ(trace->notes,
            (std::vector<std::string>{"left out, jobs that have no GPU: 1",
                                      "left out, jobs that have shards or MPS, of which sacct does "
                                      "not say how many a GPU has: 1",
                                      "left out, jobs that never started: 2"}));
}

TEST(Sacct, SaysWhatIsWrong) {
  struct Refused {
    const char* text;
    const char* message;
  };
  const Refused cases[] = {
      {"JobID|Submit|Start|End\n",
       "s:1: there is no column 'alloctres'; docs/format/trace.md has the command that prints what "
       "is needed"},
      {"JobID|Submit|Start|End|AllocTRES\n1|2|3\n",
       "s:2: 3 fields, but there are 5 columns: leave out JobName and what else may have a '|' in "
       "it"},
      {"JobID|Submit|Start|End|AllocTRES\n1|01 Mar 12:00|2026-03-01T12:00:00|Unknown|gres/gpu=1\n",
       "s:2: submit: '01 Mar 12:00' is no time of the form 2026-03-01T12:00:00 (unset "
       "SLURM_TIME_FORMAT)"},
      {"JobID|Submit|Start|End|AllocTRES\n1|01 Mar 12:00|01 Mar 12:00|01 Mar 13:00|gres/gpu=1\n",
       "s:2: submit: '01 Mar 12:00' is no time of the form 2026-03-01T12:00:00 (unset "
       "SLURM_TIME_FORMAT)"},
      {"JobID|Submit|Start|End|AllocTRES\n"
       "1|2026-03-01T12:00:00|2026-03-01T12:00:00|2026-03-01T13:00:00|cpu=1\n",
       "s: no job that had a GPU; left out, jobs that have no GPU: 1. Slurm notes GPUs where "
       "slurm.conf has AccountingStorageTRES=gres/gpu"},
  };
  for (const Refused& one : cases) {
    const auto trace = read_trace(one.text, "s");
    ASSERT_FALSE(trace) << one.text;
    EXPECT_EQ(trace.error().message, one.message);
  }
}

/// One GPU: the long job first, as Slurm did, or the short ones.
TEST(Sacct, WhatSlurmDidStandsBesideTheReplay) {
  const auto trace = read_trace(
      std::string(kHeader) +
          "1|ann|2026-03-01T10:00:00||2026-03-01T10:00:00|2026-03-01T11:00:00|COMPLETED||3600|"
          "gres/gpu=1\n"
          "2|bob|2026-03-01T10:00:00||2026-03-01T11:30:00|2026-03-01T11:40:00|COMPLETED||600|"
          "gres/gpu=1\n",
      "s");
  ASSERT_TRUE(trace) << trace.error().message;
  std::vector<Machine> fleet = *read_fleet("1x1");
  const Subject subject = subject_of(*trace, fleet, "s");
  const auto slurm = as_it_was(subject);
  ASSERT_TRUE(slurm);
  EXPECT_EQ(slurm->label, "Slurm");
  const Figures was = figures_of(*slurm);
  EXPECT_EQ(was.jobs, 2);
  EXPECT_EQ(was.longest_wait, 5400);
  EXPECT_NEAR(was.utilization, 70, 1) << "70 of 100 minutes";
  const Figures ours = figures_of(play(subject, {}, "gflow", {}));
  EXPECT_EQ(ours.longest_wait, 3600);
  EXPECT_FALSE(as_it_was(subject_of(*read_trace("0 60 1\n", "t"), fleet, "t")));
}

}  // namespace
}  // namespace gflow::lab
