// SPDX-License-Identifier: Apache-2.0
#include "core/gpu_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "base/text.h"

namespace gflow {
namespace {

/// "2 x 0.5 (nvidia: A100|H100) 8G": every field that is not its default.
std::string fields(const GpuRequest& request) {
  if (request.see_all) return "all" + (request.models.empty() ? "" : " " + request.models[0]);
  std::string out = fmt::format("{}", request.gpus);
  if (request.share != Share::whole()) out += fmt::format(" x {}", request.share.parts);
  if (request.share_limit != Share{}) out += fmt::format("..{}", request.share_limit.parts);
  if (!request.vendor.empty()) out += " " + request.vendor;
  if (!request.models.empty()) out += " " + join(request.models, "|");
  if (request.memory.bytes > 0) out += fmt::format(" {}MiB", request.memory.bytes >> 20);
  return out;
}

struct Understood {
  std::string_view text;
  std::string_view fields;
  std::string_view canonical;
};

TEST(GpuRequest, UnderstandsEveryFormatOfTheDocuments) {
  // GPU负载方式详解, "支持的格式" and the examples of the three ways.
  constexpr std::array kRows = std::to_array<Understood>({
      {"2(V100)", "2 V100", "2(V100)"},
      {"1", "1", "1"},
      {"4(A100)", "4 A100", "4(A100)"},
      {"0.5", "1 x 5000", "0.5"},
      {"0.25", "1 x 2500", "0.25"},
      {"8G,0.5", "1 x 5000 8192MiB", "8G,0.5"},
      {"16G,0.75", "1 x 7500 16384MiB", "16G,0.75"},
      {"1(V100)", "1 V100", "1(V100)"},
      {"2", "2", "2"},
      {"1(nvidia,V100)", "1 nvidia V100", "1(nvidia,V100)"},
  });
  for (const Understood& row : kRows) {
    const auto request = parse_gpu_request(row.text);
    ASSERT_TRUE(request) << row.text << ": " << request.error().message;
    EXPECT_EQ(fields(*request), row.fields) << row.text;
    EXPECT_EQ(gpu_request_text(*request), row.canonical);
  }
}

TEST(GpuRequest, UnderstandsWhatElsePeopleWrite) {
  constexpr std::array kRows = std::to_array<Understood>({
      {"0", "0", "0"},
      {" 2 ", "2", "2"},
      {"+2", "2", "2"},
      {"2.0", "2", "2"},
      {"02", "2", "2"},
      {"1024", "1024", "1024"},
      {"0.50", "1 x 5000", "0.5"},
      {".5", "1 x 5000", "0.5"},
      {"0.0001", "1 x 1", "0.0001"},
      {"0.333300", "1 x 3333", "0.3333"},
      {"2x0.5", "2 x 5000", "2x0.5"},
      {"2 × 0.25(A100)", "2 x 2500 A100", "2x0.25(A100)"},
      // What is guaranteed, and the most.
      {"0.3..1", "1 x 3000..10000", "0.3..1"},
      {"8G,0.25 .. 0.50(A100)", "1 x 2500..5000 A100 8192MiB", "8G,0.25..0.5(A100)"},
      {"0.5..0.5", "1 x 5000", "0.5"},
      {"2*1", "2", "2"},
      {"0.5(T4)", "1 x 5000 T4", "0.5(T4)"},
      // Full width, as a Chinese keyboard gives it.
      {"２", "2", "2"},
      {"2（V100）", "2 V100", "2(V100)"},
      {"1（nvidia，V100）", "1 nvidia V100", "1(nvidia,V100)"},
      {"８Ｇ，０．５", "1 x 5000 8192MiB", "8G,0.5"},
      {"１（Ａ１００｜Ｈ１００）", "1 A100|H100", "1(A100|H100)"},
      {"2(V100）", "2 V100", "2(V100)"},
      {"8G、0.5", "1 x 5000 8192MiB", "8G,0.5"},
      {"−1", "all", "-1"},
      // Kinds.
      {"2 (v100)", "2 V100", "2(V100)"},
      {"1(NVIDIA, a100)", "1 nvidia A100", "1(nvidia,A100)"},
      {"1(a100 , nvidia)", "1 nvidia A100", "1(nvidia,A100)"},
      {"1(nvidia)", "1 nvidia", "1(nvidia)"},
      {"1(gpu)", "1", "1"},
      {"1(gpu,V100)", "1 V100", "1(V100)"},
      {"8(npu)", "8 ascend", "8(npu)"},
      {"8(huawei,910B)", "8 ascend 910B", "8(npu,910B)"},
      {"1(amd,mi300x)", "1 amd MI300X", "1(amd,MI300X)"},
      {"1(intel,Max 1550)", "1 intel Max1550", "1(intel,Max1550)"},
      {"1(H100|A100|a100)", "1 A100|H100", "1(A100|H100)"},
      {"1(nvidia,A100|H100)", "1 nvidia A100|H100", "1(nvidia,A100|H100)"},
      {"1(RTX 3090)", "1 RTX3090", "1(RTX3090)"},
      {"1(3090)", "1 RTX3090", "1(RTX3090)"},
      {"1(a100-80g)", "1 A100-80G", "1(A100-80G)"},
      {"1(NVIDIA A100-SXM4-80GB)", "1 A100-80G", "1(A100-80G)"},
      {"1(V100M16|V100M32)", "1 V100-16G|V100-32G", "1(V100-16G|V100-32G)"},
      {"1(G2)", "1 G2", "1(G2)"},
      // Memory of each device.
      {"2(A100),40G", "2 A100 40960MiB", "2(A100),40G"},
      {"40G,2(A100)", "2 A100 40960MiB", "2(A100),40G"},
      {"40G(A100),2", "2 A100 40960MiB", "2(A100),40G"},
      {"8G,1", "1 8192MiB", "1,8G"},
      {"0.5,8G", "1 x 5000 8192MiB", "8G,0.5"},
      {"8g,0.5(V100)", "1 x 5000 V100 8192MiB", "8G,0.5(V100)"},
      {"8GB,0.5", "1 x 5000 8192MiB", "8G,0.5"},
      {"8192MiB , 0.5", "1 x 5000 8192MiB", "8G,0.5"},
      {"1.5G,0.5", "1 x 5000 1536MiB", "1.5G,0.5"},
      {"0.1G,0.5", "1 x 5000 103MiB", "103M,0.5"},
      {"1K,0.5", "1 x 5000 1MiB", "1M,0.5"},
      {"0.1T,1", "1 104858MiB", "1,104858M"},
      {"1T,1", "1 1048576MiB", "1,1T"},
      {"8G,2x0.5", "2 x 5000 8192MiB", "8G,2x0.5"},
      // See everything, hold nothing.
      {"-1", "all", "-1"},
      {"-1(V100)", "all V100", "-1(V100)"},
      // Slurm.
      {"gpu:2", "2", "2"},
      {"gpu", "1", "1"},
      {"gpu:v100", "1 V100", "1(V100)"},
      {"gpu:v100:2", "2 V100", "2(V100)"},
      {"GPU:A100:4", "4 A100", "4(A100)"},
      {"v100:2", "2 V100", "2(V100)"},
      {"gres/gpu:2", "2", "2"},
      {"gpu:0", "0", "0"},
  });
  for (const Understood& row : kRows) {
    const auto request = parse_gpu_request(row.text);
    ASSERT_TRUE(request) << row.text << ": " << request.error().message;
    EXPECT_EQ(fields(*request), row.fields) << row.text;
    EXPECT_EQ(gpu_request_text(*request), row.canonical) << row.text;
    EXPECT_EQ(parse_gpu_request(row.canonical), request) << row.text;
  }
}

TEST(GpuRequest, SaysWhereAMistakeIsAndWhatWouldBeRight) {
  struct Row {
    std::string_view text;
    std::string_view marked;  ///< what the position covers
    std::size_t column;
    std::string_view message;
  };
  constexpr std::string_view kRange =
      "a range is of parts of one GPU, what is guaranteed and the most; write 0.3..1";
  constexpr std::array kRows = std::to_array<Row>({
      {"", "", 1, "a value is missing here; write 0 for a job without GPUs"},
      {"   ", "", 1, "a value is missing here"},
      {"1.5", "1.5", 1, "a job has whole GPUs or a part of one; write 2 or 0.5"},
      {"0.00005", "0.00005", 1, "a share has at most four decimals; write 0.0001"},
      {"0.12345", "0.12345", 1, "a share has at most four decimals; write 0.1234"},
      {"0.0", "0.0", 1, "a share of zero; write 0 for a job without GPUs"},
      {"0.5(3g.20gb)", "0.5", 1, "a MIG device is given to one job as a whole; write 1(3g.20gb)"},
      {"8G,0.5(a100|a100-1g.5gb)",
       "0.5",
       4,
       "a MIG device is given to one job as a whole; write 1(A100-1g.5gb)"},
      {"3g.20gb", "3g.20gb", 1, "the number of GPUs is missing; write 1(3g.20gb)"},
      {"0.5..0.3", "0.5..0.3", 1, "the most is less than what is guaranteed; write 0.3..0.5"},
      {"0..1", "0..1", 1, kRange},
      {"0.3..0", "0.3..0", 1, kRange},
      {"0.3..2", "0.3..2", 1, kRange},
      {"1..2", "1..2", 1, kRange},
      {"1..1", "1..1", 1, kRange},
      {"0.3..", "0.3..", 1, kRange},
      {"0.3..1.5", "0.3..1.5", 1, kRange},
      {"0.3...1", "0.3...1", 1, kRange},
      {"0.3..1G", "0.3..1G", 1, kRange},
      {"0.3..0.5..1", "0.3..0.5..1", 1, kRange},
      {"2x0.3..1", "2x0.3..1", 1, kRange},
      {"8G..16G,0.5",
       "8G..16G",
       1,
       "memory has no range: what a job has got of it cannot be taken back; write the most it "
       "needs"},
      {"1025", "1025", 1, "more than the 1024 GPUs a job may ask for"},
      {"3090", "3090", 1, "more than the 1024 GPUs a job may ask for; write 1(RTX3090) for the"},
      {"99999999999999999999999", "99999999999999999999999", 1, "more than the 1024 GPUs"},
      {"-2", "-2", 1, "a negative amount; -1 alone sees every GPU"},
      {"-0.5", "-0.5", 1, "a negative amount"},
      {"-1,8G", "8G", 4, "-1 reserves nothing, so no memory can be promised"},
      {"8G,-1", "8G", 1, "-1 reserves nothing"},
      {"abc", "abc", 1, "'abc' is neither a number of GPUs nor an amount of memory; write 2, 0.5"},
      {"inf", "inf", 1, "'inf' is neither a number"},
      {"nan", "nan", 1, "'nan' is neither a number"},
      {"two", "two", 1, "'two' is neither a number"},
      {"V100", "V100", 1, "the number of GPUs is missing; write 1(V100)"},
      {"nvidia", "nvidia", 1, "the number of GPUs is missing; write 1(nvidia)"},
      {"(V100)", "(", 1, "the number of GPUs is missing; write 1(V100)"},
      {"2V100", "V100", 2, "'V100' does not belong here; write 2(V100)"},
      {"2 a100", "a100", 3, "'a100' does not belong here; write 2(A100)"},
      {"2xV100", "xV100", 2, "'xV100' does not belong here; write 2(V100)"},
      {"1e3", "e3", 2, "'e3' does not belong here; the GPU model goes in brackets"},
      {"50%", "50%", 1, "a share is written as a decimal; 50% is 0.5"},
      {"1.", "1.", 1, "digits are missing after the decimal point"},
      {"2(", "(", 2, "this bracket is not closed; write 2()"},
      {"2(V100", "(", 2, "this bracket is not closed; write 2(V100)"},
      {"2)", ")", 2, "this bracket was not opened"},
      {"2()", "", 3, "the brackets are empty; leave them out"},
      {"2( )", "", 3, "the brackets are empty"},
      {"2(a100)(h100)", "(", 8, "a second pair of brackets"},
      {"2((a100))", "(", 3, "a bracket within brackets"},
      {"2(A100),40G(A100)", "A100", 13, "a second pair of brackets"},
      {"2(V100)x", "x", 8, "nothing but a comma may follow the bracket"},
      {"2(V100,32G)", "32G", 8, "memory goes outside the brackets; write 2(V100),32G"},
      {"2(A100,H100)", "H100", 8, "a second model; write A100|H100 for either model"},
      {"2(nvidia,amd)", "amd", 10, "a second vendor"},
      {"2(nvidia,)", "", 10, "a model is missing here"},
      {"2(|A100)", "", 3, "a model is missing here"},
      {"2(amd,V100)", "amd,V100", 3, "V100 is made by nvidia, not amd; write V100"},
      {"1(nvdia)",
       "nvdia",
       3,
       "'nvdia' is neither a vendor nor a model of GPUs; did you mean nvidia?"},
      {"1(TITAN RTZ)", "TITAN RTZ", 3, "'TITAN RTZ' is neither a vendor nor a model of GPUs; did"},
      {"1(fast)", "fast", 3, "'fast' is neither a vendor nor a model of GPUs; vendors are nvidia,"},
      {"1(T4-32G)", "T4-32G", 3, "there is no T4 with that much memory; it has 16G"},
      {"1(A100-60G)", "A100-60G", 3, "there is no A100 with that much memory; it has 80G or 40G"},
      {"1（nvdia）", "nvdia", 3, "'nvdia' is neither a vendor"},
      {"1(V100;A100)", ";", 7, "';' is not allowed in the name of a GPU"},
      {"8G", "8G", 1, "memory alone does not say how much of a GPU; write 8G,0.5 for half of one"},
      {"8,0.5", "0.5", 3, "the number of GPUs is given twice; memory needs a unit, such as 8G,0.5"},
      {"0.5,0.5", "0.5", 5, "the number of GPUs is given twice"},
      {"8G,8G", "8G", 4, "memory is given twice; write it once"},
      {"0G,1", "0G", 1, "zero memory; leave it out"},
      {"99999999T,1", "99999999T", 1, "more memory than any GPU has"},
      {"1,", "", 3, "a value is missing here"},
      {",1", "", 1, "a value is missing here"},
      {"8X,0.5", "X", 2, "'X' does not belong here"},
      {"0,8G", "0", 1, "zero GPUs with a model or memory; write 0 alone, or at least 1"},
      {"0(V100)", "0", 1, "zero GPUs with a model or memory"},
      {"0x0.5", "0x0.5", 1, "the number of GPUs goes before the x, the share of each after it"},
      {"2x1.5", "2x1.5", 1, "the number of GPUs goes before the x"},
      {"0.5x2", "0.5x2", 1, "the number of GPUs goes before the x"},
      {"gpu:v100:a100:2", "a100", 10, "one model and one number of GPUs; write gpu:v100:2"},
      {"gpu:", "", 5, "a model or a number is missing here"},
      {"gpu:v10o:x", "v10o", 0, ""},
      {"2显卡", "显", 2, "'显' does not belong in a request for GPUs"},
      {"2\x1b[2J", "\x1b", 2, "'\\x1b' does not belong in a request for GPUs"},
      {"2\xff", "\xff", 2, "'\\xff' does not belong in a request for GPUs"},
  });
  for (const Row& row : kRows) {
    const auto request = read_gpu_request(row.text);
    ASSERT_FALSE(request) << row.text;
    if (row.column == 0) continue;  // it is only wrong
    const GpuRequestMistake& mistake = request.error();
    EXPECT_EQ(row.text.substr(mistake.begin, mistake.end - mistake.begin), row.marked) << row.text;
    EXPECT_EQ(mistake.column, row.column) << row.text;
    const std::string said = mistake.what + (mistake.instead.empty() ? "" : "; " + mistake.instead);
    EXPECT_TRUE(said.starts_with(row.message)) << row.text << ": " << said;
  }
  EXPECT_FALSE(read_gpu_request(std::string(257, '1')));
  EXPECT_FALSE(read_gpu_request("1(A1|A2|A3|A4|A5|A6|A7|A8|A9|B1|B2|B3|B4|B5|B6|B7|B8)"));
  const auto error = parse_gpu_request("1.5").error();
  EXPECT_EQ(error.code, Code::Usage);
  EXPECT_EQ(error.message,
            "'1.5', column 1: a job has whole GPUs or a part of one; write 2 or 0.5");
}

TEST(GpuRequest, NamesTheResourceOfACluster) {
  struct Row {
    std::string_view text;
    std::string_view resource;
  };
  for (const Row& row : {Row{"1", "nvidia.com/gpu"},
                         Row{"1(gpu)", "nvidia.com/gpu"},
                         Row{"1(nvidia)", "nvidia.com/gpu"},
                         Row{"1(amd)", "amd.com/gpu"},
                         Row{"1(MI300X)", "amd.com/gpu"},
                         Row{"1(intel)", "intel.com/gpu"},
                         Row{"1(npu)", "huawei.com/npu"},
                         Row{"1(910B3)", "huawei.com/npu"},
                         Row{"1(G2)", "nvidia.com/gpu"}}) {
    EXPECT_EQ(resource_name(*parse_gpu_request(row.text), {}), row.resource) << row.text;
  }
  const GpuResources own = {{{"dcu", "hygon.com/dcu"}, {"npu", "huawei.com/Ascend910"}},
                            "example.com/gpu"};
  EXPECT_EQ(resource_name(*parse_gpu_request("2(dcu)", own), own), "hygon.com/dcu");
  EXPECT_EQ(resource_name(*parse_gpu_request("2(npu)", own), own), "huawei.com/Ascend910");
  EXPECT_EQ(resource_name(*parse_gpu_request("2(V100)", own), own), "example.com/gpu");
  EXPECT_FALSE(parse_gpu_request("2(dcu)"));
}

TEST(GpuRequest, BecomesARequestAndIsReadFromOne) {
  Request request;
  request.gpu_memory = Memory::gib(4);
  apply(*parse_gpu_request("2(A100)"), request);
  EXPECT_EQ(request.mode, GpuMode::Whole);
  EXPECT_EQ(request.gpu_memory, Memory::gib(4)) << "kept where nothing is said of it";
  EXPECT_EQ(gpu_request_text(request), "2(A100),4G");
  apply(*parse_gpu_request("8G,0.5"), request);
  EXPECT_EQ(request.mode, GpuMode::Fraction);
  EXPECT_EQ(request.share, Share::percent(50));
  EXPECT_TRUE(request.models.empty());
  EXPECT_EQ(gpu_request_text(request), "8G,0.5");
  request.mode = GpuMode::TimeSlice;
  request.share = Share::whole();
  EXPECT_EQ(gpu_request_text(request), "1,8G");
}

TEST(GpuRequest, SettlesWhatCameByAnotherWay) {
  Request request{.gpus = 1,
                  .share = Share::percent(50),
                  .vendor = "NVIDIA",
                  .models = {"v100", "A100", "a100"},
                  .selector = {{"b", "1"}, {"a", "1"}, {"b", "1"}}};
  ASSERT_TRUE(normalise(request));
  EXPECT_EQ(request,
            (Request{.gpus = 1,
                     .share = Share::percent(50),
                     .mode = GpuMode::Fraction,
                     .vendor = "nvidia",
                     .models = {"A100", "V100"},
                     .selector = {{"a", "1"}, {"b", "1"}}}));
  Request npu{.gpus = 1, .mode = GpuMode::Fraction, .vendor = "huawei"};
  ASSERT_TRUE(normalise(npu));
  EXPECT_EQ(npu, (Request{.gpus = 1, .vendor = "ascend"}));
  Request wrong{.gpus = 1, .models = {"A1OO", "fast"}};
  EXPECT_EQ(normalise(wrong).error().message, "gpu_models: 'fast' is not a model of GPUs");
  Request strange{.gpus = 1, .vendor = "n v"};
  EXPECT_EQ(normalise(strange).error().code, Code::Usage);
}

}  // namespace
}  // namespace gflow
