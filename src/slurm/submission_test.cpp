// SPDX-License-Identifier: Apache-2.0
#include "slurm/submission.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gflow::slurm {
namespace {

TEST(SlurmSubmission, AJobIsACallOfSbatch) {
  JobSpec spec;
  spec.work_dir = "/w";
  spec.time_limit = std::chrono::seconds(90);
  spec.priority = 5;
  spec.dependencies = {{JobId(4), JobId(5)}, DependencyMode::Any, false};
  Payload payload;
  payload.argv = {"train.sh", "a b"};
  payload.script = "#!/bin/sh\n#SBATCH --array=1-9\n#SBATCH --qos=x\ntrue\n";
  Facts facts;
  for (const std::uint64_t id : {4U, 5U}) facts.jobs.emplace_back().id = id;
  facts.jobs[1].array = 5;
  facts.jobs[1].tasks = "3";  // the last task of array 5
  const auto call = sbatch_call(spec, payload, facts, "gflow:1");
  ASSERT_TRUE(call) << call.error().message;
  for (const char* word : {"--job-name=train.sh",
                           "--chdir=/w",
                           "--time=1:30",
                           "--nice=500",
                           "--dependency=afterok:4?afterok:5_3",
                           "--kill-on-invalid-dep=no",
                           "--comment=gflow:1"}) {
    EXPECT_NE(std::ranges::find(call->argv, word), call->argv.end()) << word;
  }
  EXPECT_EQ(call->argv[call->argv.size() - 2], "/dev/stdin");
  EXPECT_EQ(call->argv.back(), "a b");
  EXPECT_EQ(call->input, "#!/bin/sh\n#SBATCH \n#SBATCH --qos=x\ntrue\n");
  payload.script.reset();
  EXPECT_EQ(sbatch_call(spec, payload, facts, "")->argv.back(), "a b");
  spec.max_retries = 1;
  EXPECT_FALSE(sbatch_call(spec, payload, facts, ""));
}

TEST(SlurmSubmission, ATaskHasWhatScriptsOfArraysRead) {
  Payload payload;
  payload.argv = {"a.sh"};
  payload.script = "#!/bin/sh\n#SBATCH -o %A_%a\ntrue\n";
  payload.environment = {"GFLOW_ARRAY_TASK_COUNT=2",
                         "GFLOW_ARRAY_TASK_MIN=3",
                         "GFLOW_ARRAY_TASK_MAX=5",
                         "GFLOW_ARRAY_TASK_ID=5"};
  const auto call = sbatch_call({}, payload, {}, "");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->input, "#!/bin/sh\n#SBATCH -o %j_5\ntrue\n");
  for (const char* variable : {"SLURM_ARRAY_TASK_ID=5",
                               "SLURM_ARRAY_TASK_COUNT=2",
                               "SLURM_ARRAY_TASK_MIN=3",
                               "SLURM_ARRAY_TASK_MAX=5"}) {
    EXPECT_NE(std::ranges::find(call->environment, variable), call->environment.end()) << variable;
  }
}

TEST(SlurmSubmission, WhatSlurmDoesNotKnowIsNotWaitedFor) {
  JobSpec spec;
  spec.dependencies = {{JobId(999)}, DependencyMode::All, true};
  Payload payload;
  payload.argv = {"true"};
  const auto call = sbatch_call(spec, payload, {}, "");
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().code, Code::NotFound);
  EXPECT_NE(call.error().message.find("job 999"), std::string::npos);
}

TEST(SlurmSubmission, WhatSlurmCannotKeepIsRefused) {
  Payload payload;
  payload.argv = {"true"};
  JobSpec range;
  range.request = {
      .gpus = 1, .share = Share{3000}, .share_limit = Share{5000}, .mode = GpuMode::Fraction};
  EXPECT_NE(sbatch_call(range, payload, {}, "").error().message.find("0.3..0.5"),
            std::string::npos);
  JobSpec slow;
  slow.grace = std::chrono::minutes(5);
  EXPECT_NE(sbatch_call(slow, payload, {}, "").error().message.find("KillWait"), std::string::npos);
}

TEST(SlurmSubmission, AScriptThatSubmitsNothingIsRefused) {
  Payload payload;
  payload.argv = {"a.sh"};
  payload.script = "#!/bin/sh\n#SBATCH --test-only\n";
  EXPECT_FALSE(sbatch_call({}, payload, {}, ""));
}

}  // namespace
}  // namespace gflow::slurm
