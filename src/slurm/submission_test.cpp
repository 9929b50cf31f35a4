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
  const auto call = sbatch_call(spec, payload, {}, "gflow:1");
  ASSERT_TRUE(call) << call.error().message;
  for (const char* word : {"--job-name=train.sh",
                           "--chdir=/w",
                           "--time=1:30",
                           "--nice=500",
                           "--dependency=afterok:4?afterok:5",
                           "--kill-on-invalid-dep=no",
                           "--comment=gflow:1"}) {
    EXPECT_NE(std::ranges::find(call->argv, word), call->argv.end()) << word;
  }
  EXPECT_EQ(call->argv[call->argv.size() - 2], "/dev/stdin");
  EXPECT_EQ(call->argv.back(), "a b");
  EXPECT_EQ(call->input, "#!/bin/sh\n##SBATCH --array=1-9\n#SBATCH --qos=x\ntrue\n");
  payload.script.reset();
  EXPECT_EQ(sbatch_call(spec, payload, {}, "")->argv.back(), "a b");
  spec.max_retries = 1;
  EXPECT_FALSE(sbatch_call(spec, payload, {}, ""));
}

}  // namespace
}  // namespace gflow::slurm
