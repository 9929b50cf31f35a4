// SPDX-License-Identifier: Apache-2.0
#include "core/request_text.h"

#include <gtest/gtest.h>

#include "core/gpu_request.h"

namespace gflow {
namespace {

TEST(RequestText, SaysInWordsWhatIsAskedFor) {
  struct Row {
    std::string_view gpus;
    std::string_view words;
  };
  for (const Row& row :
       {Row{"0", "0 GPUs"},
        Row{"1", "1 GPU"},
        Row{"2(V100)", "2 V100 GPUs"},
        Row{"1(nvidia,V100)", "1 V100 GPU"},
        Row{"4(amd)", "4 amd GPUs"},
        Row{"1(A100|H100)", "1 A100 or H100 GPU"},
        Row{"2(A100),40G", "2 A100 GPUs, 40G free on each"},
        Row{"0.5", "half of a GPU"},
        Row{"0.25(T4)", "0.25 of a T4 GPU"},
        Row{"0.5(A100)", "half of an A100 GPU"},
        Row{"0.5(RTX3090|T4)", "half of an RTX3090 or T4 GPU"},
        Row{"0.5(intel)", "half of an intel GPU"},
        Row{"0.5(nvidia)", "half of an nvidia GPU"},
        Row{"8G,0.5", "half of a GPU, 8G of memory on it"},
        Row{"8G,2x0.75", "0.75 of each of 2 GPUs, 8G of memory on each"},
        Row{"-1", "every GPU visible, none reserved"},
        Row{"-1(V100)", "every GPU visible, none reserved, where there is a V100 GPU"}}) {
    Request request;
    apply(*parse_gpu_request(row.gpus), request);
    EXPECT_EQ(gpus_in_words(request), row.words);
  }
  Request turns;
  apply(*parse_gpu_request("1(V100),16G"), turns);
  turns.mode = GpuMode::TimeSlice;
  EXPECT_EQ(gpus_in_words(turns), "1 V100 GPU time-sliced with others, 16G of memory on it");
}

TEST(RequestText, AddsTheRest) {
  Request request{.gpus = 8,
                  .cpus = 1,
                  .memory = Memory::gib(64),
                  .nodes = 2,
                  .selector = {{"disk", "nvme"}, {"zone", "b"}}};
  EXPECT_EQ(request_in_words(request),
            "8 GPUs, 1 CPU, 64G memory, on each of 2 nodes, where disk=nvme,zone=b");
  request.selector = {{"gflow/admits-3", ""}, {"zone", "b"}};
  EXPECT_TRUE(request_in_words(request).ends_with("2 nodes, where zone=b"));
  request.selector.pop_back();
  EXPECT_TRUE(request_in_words(request).ends_with("2 nodes"))
      << "it is a number to gflow-kube only";
  EXPECT_EQ(request_in_words({}), "0 GPUs");
}

}  // namespace
}  // namespace gflow
