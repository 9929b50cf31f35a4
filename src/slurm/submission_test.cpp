// SPDX-License-Identifier: Apache-2.0
#include "slurm/submission.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/gpu_request.h"

namespace gflow::slurm {
namespace {

Request asking(const std::string& gpus) {
  Request request;
  apply(*parse_gpu_request(gpus), request);
  return request;
}

TEST(SlurmSubmission, GpusBecomeGres) {
  const auto nodes = read_nodes(
      "NodeName=n1 Gres=gpu:v100:4,shard:v100:40\nNodeName=n2 Gres=gpu:a100:8,shard:a100:32\n");
  struct Case {
    const char* gpus;
    const char* gres;  ///< or what is said instead
  };
  const Case cases[] = {{"0", ""},
                        {"2", "gpu:2"},
                        {"2(V100)", "gpu:v100:2"},
                        {"0.5(V100)", "shard:v100:5"},
                        {"0.01(V100)", "shard:v100:1"},
                        {"0.5(A100)", "shard:a100:2"},
                        {"0.5", "shard:5"},
                        {"8G,0.1(V100)", "shard:v100:3"},
                        {"1,40G", "gpu:a100:1"},
                        {"1(H100)", "no node of Slurm has such GPUs; there are: a100, v100"},
                        {"1(A100|V100)", "Slurm takes one model for a job: name one of them"}};
  for (const Case& one : cases) {
    const auto gres = gres_for(asking(one.gpus), nodes);
    EXPECT_EQ(gres ? *gres : gres.error().message, one.gres) << one.gpus;
  }
  EXPECT_EQ(*gres_for(asking("0.5"), read_nodes("NodeName=n Gres=gpu:2,mps:200\n")), "mps:50");
  EXPECT_FALSE(gres_for(asking("0.5"), read_nodes("NodeName=n Gres=gpu:2\n")));
}

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

TEST(SlurmSubmission, AScriptThatSubmitsNothingIsRefused) {
  Payload payload;
  payload.argv = {"a.sh"};
  payload.script = "#!/bin/sh\n#SBATCH --test-only\n";
  EXPECT_FALSE(sbatch_call({}, payload, {}, ""));
}

}  // namespace
}  // namespace gflow::slurm
