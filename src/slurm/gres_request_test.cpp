// SPDX-License-Identifier: Apache-2.0
#include "slurm/gres_request.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "core/gpu_request.h"

namespace gflow::slurm {
namespace {

Request asking(const std::string& gpus) {
  Request request;
  apply(*parse_gpu_request(gpus), request);
  return request;
}

/// What is asked for where nodes have such, or what is said instead.
struct OfNodes {
  const char* nodes;
  const char* gpus;
  const char* gres;
};

TEST(SlurmGresRequest, NothingElseCanBeGiven) {
  constexpr const char* kNameOne =
      "Slurm takes one type of GPU for a job, and several would do: name one of them: ";
  const OfNodes cases[] = {
      {"gpu:v100:4,shard:40/gpu:a100:4,shard:80", "0.5", "v100"},
      {"gpu:v100:4,shard:40/gpu:a100:4,shard:40", "0.5", "shard:5"},
      {"gpu:v100:4,shard:40/gpu:a100:4", "0.5", "shard:v100:5"},
      {"gpu:v100:4,shard:40/gpu:v100:4,shard:80", "0.5", "different numbers of parts"},
      {"gpu:mi250:4", "1(nvidia)", "there are: mi250"},
      {"gpu:mi250:4/gpu:v100:4", "1(nvidia)", "gpu:v100:1"},
      {"gpu:mi250:4/gpu:v100:4", "1(amd)", "gpu:mi250:1"},
      {"gpu:a100:4/gpu:a100-80g:4", "1(A100)", "gpu:a100:1"},
      {"gpu:a100:4/gpu:a100-80g:4", "1(A100-80G)", "gpu:a100-80g:1"},
      {"gpu:a100-40g:4/gpu:a100-80g:4/gpu:v100:1", "1(A100)", "a100-40g, a100-80g"},
      {"gpu:a100:2,gpu:a100_3g.20gb:4", "1", "gpu:a100:1"},
      {"gpu:a100_3g.20gb:4", "1", "there are: a100_3g.20gb"},
      {"gpu:a100:2,gpu:a100_3g.20gb:4", "2(3g.20gb)", "gpu:a100_3g.20gb:2"},
      {"gpu:4/gpu:v100:2", "1(V100)", "gpu:v100:1"},
      {"gpu:v100:2/gpu:a100:2/gpu:t4:1", "1(A100|V100)", kNameOne},
      {"gpu:v100:2", "1", "gpu:1"},
      {"gpu:v100:2", "1,500G", "known to have so much memory"},
      {"nic:1", "1", "no node of Slurm has GPUs"}};
  for (const OfNodes& one : cases) {
    std::string nodes;
    for (const std::string_view gres : split(one.nodes, '/')) {
      nodes += "NodeName=n Gres=" + std::string(gres) + "\n";
    }
    const auto made = gres_for(asking(one.gpus), read_nodes(nodes));
    const std::string said = made ? *made : made.error().message;
    EXPECT_TRUE(made ? said == one.gres : said.find(one.gres) != std::string::npos)
        << one.nodes << ' ' << one.gpus << ": " << said;
  }
}

TEST(SlurmGresRequest, GpusBecomeGres) {
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
                        {"0.5",
                         "Slurm takes one type of GPU for a job, and several would do: name one of "
                         "them: a100, v100"},
                        {"8G,0.1(V100)", "shard:v100:3"},
                        {"60G,0.1", "shard:a100:3"},
                        {"0.5(nvidia)",
                         "Slurm takes one type of GPU for a job, and several would do: name one of "
                         "them: a100, v100"},
                        {"1(nvidia)", "gpu:1"},
                        {"1(amd)", "no node of Slurm has such GPUs; there are: a100, v100"},
                        {"0.5(amd)", "no node of Slurm has such GPUs; there are: a100, v100"},
                        {"1,40G", "gpu:a100:1"},
                        {"1(H100)", "no node of Slurm has such GPUs; there are: a100, v100"},
                        {"1(A100|V100)", "gpu:1"}};
  for (const Case& one : cases) {
    const auto gres = gres_for(asking(one.gpus), nodes);
    EXPECT_EQ(gres ? *gres : gres.error().message, one.gres) << one.gpus;
  }
  EXPECT_EQ(*gres_for(asking("0.5"), read_nodes("NodeName=n Gres=gpu:2,mps:200\n")), "mps:50");
  EXPECT_FALSE(gres_for(asking("0.5"), read_nodes("NodeName=n Gres=gpu:2\n")));
}

}  // namespace
}  // namespace gflow::slurm
