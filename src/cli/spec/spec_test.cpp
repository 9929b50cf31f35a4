// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "cli/spec/spec_text.h"

namespace gflow::cli {
namespace {

std::string explained(std::string_view text, GpuMode mode = GpuMode::Whole) {
  Request request;
  apply(*parse_gpu_request(text), request);
  if (mode == GpuMode::TimeSlice) request.mode = mode;
  return spec_text(api::gpu_spec_view(std::string(text), request, {}), GpuConfig(), Painter());
}

TEST(Spec, ExplainsAPartOfAGpu) {
  EXPECT_EQ(explained("8g,0.50"),
            "8g,0.50: half of a GPU, 8G of memory on it\n"
            "  GPUs         1\n"
            "  Share        0.5 of each, 5000 of 10000 parts\n"
            "  Memory       8G free on each before the job starts\n"
            "  Vendor       any\n"
            "  Models       any\n"
            "  Mode         part of a GPU, shared with other jobs\n"
            "  Limits       memory and compute capped by the interposer on NVIDIA GPUs "
            "('gflow doctor' says what is in force here)\n"
            "  Resource     nvidia.com/gpu\n"
            "  Short        8G,0.5\n");
}

TEST(Spec, ExplainsWholeGpusOfSomeKinds) {
  EXPECT_EQ(explained("2(a100-40g|H100|G2)"),
            "2(a100-40g|H100|G2): 2 A100-40G or G2 or H100 GPUs\n"
            "  GPUs         2\n"
            "  Share        1, whole GPUs\n"
            "  Memory       not declared\n"
            "  Vendor       any\n"
            "  Models       A100-40G (nvidia, 40G) or G2 (not a model gflow knows) or H100 "
            "(nvidia, 80G)\n"
            "  Mode         whole GPUs, exclusive to the job\n"
            "  Resource     nvidia.com/gpu\n"
            "  Short        2(A100-40G|G2|H100)\n");
}

TEST(Spec, ExplainsTheOtherWays) {
  EXPECT_NE(explained("1,16G", GpuMode::TimeSlice).find("time-sliced with other jobs"),
            std::string::npos);
  EXPECT_NE(explained("-1").find("  GPUs         all, none reserved\n"), std::string::npos);
  EXPECT_EQ(explained("0"),
            "0: 0 GPUs\n"
            "  GPUs         0\n"
            "  Mode         runs without GPUs\n"
            "  Resource     nvidia.com/gpu\n"
            "  Short        0\n");
}

TEST(Spec, MarksAMistakeBelowTheText) {
  struct Row {
    std::string_view text;
    std::string_view marked;
  };
  for (const Row& row : {Row{"2(nvdia)", "  2(nvdia)\n    ^^^^^\n"},
                         Row{"2（nvdia）", "  2（nvdia）\n     ^^^^^\n"},
                         Row{"2显卡", "  2显卡\n   ^^\n"},
                         Row{"2()", "  2()\n    ^\n"},
                         Row{"", "  \n  ^\n"},
                         Row{"\x1b[2J", "  \\x1b[2J\n  ^^^^\n"}}) {
    EXPECT_EQ(marked_text(row.text, read_gpu_request(row.text).error()), row.marked);
  }
}

TEST(Spec, IsADocument) {
  Request request;
  apply(*parse_gpu_request("1(mi300x),40G"), request);
  EXPECT_EQ(
      api::write(api::gpu_spec_view("1(mi300x),40G", request, {})),
      R"({"apiVersion":"gflow/v1","kind":"GpuSpec","text":"1(mi300x),40G",)"
      R"("canonical":"1(MI300X),40G","words":"1 MI300X GPU, 40G free on it","gpus":1,)"
      R"("gpu_share_parts":10000,"gpu_share":"1","gpu_share_limit_parts":0,"gpu_memory_bytes":42949672960,)"
      R"("gpu_vendor":null,"gpu_models":["MI300X"],"gpu_mode":"whole","see_all":false,)"
      R"("resource_name":"amd.com/gpu","load_mode":"count"})");
}

}  // namespace
}  // namespace gflow::cli
