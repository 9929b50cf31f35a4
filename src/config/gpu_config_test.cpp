// SPDX-License-Identifier: Apache-2.0
#include "config/gpu_config.h"

#include <gtest/gtest.h>

#include "os/file.h"

namespace gflow::config {
namespace {

constexpr std::string_view kDocument = R"(# GPU资源配置
gpu_resource:
  gpu: "nvidia.com/gpu"
  nvidia: "nvidia.com/gpu"
  amd: "amd.com/gpu"
  intel: "intel.com/gpu"
  npu: "huawei.com/npu"

# 默认GPU资源名称
default_gpu_resource_name: "nvidia.com/gpu"

# GPU显存配置 (GB)
gpu_memory_specs:
  T4: 16.0
  V100: 32.0
  A100: 80.0
  H100: 80.0
  RTX3090: 24.0
  RTX4090: 24.0
  A6000: 48.0
  A40: 48.0

# 监控配置
monitor_update_interval: 30
resource_change_threshold: 0.05
log_level: "INFO"
)";

TEST(GpuConfigFile, ReadsThatOfTheDocuments) {
  const auto config = parse_gpu_config(std::string(kDocument), "gpu_config.yaml");
  ASSERT_TRUE(config) << config.error().message;
  GpuConfig want;
  for (const auto& [model, size] : {std::pair{"T4", 16},
                                    {"V100", 32},
                                    {"A100", 80},
                                    {"H100", 80},
                                    {"RTX3090", 24},
                                    {"RTX4090", 24},
                                    {"A6000", 48},
                                    {"A40", 48}}) {
    want.memory_specs[model] = Memory::gib(size);
    EXPECT_EQ(memory_spec(GpuConfig(), model), Memory::gib(size)) << "known without a file, too";
  }
  want.monitor_update_interval = std::chrono::seconds(30);
  want.resource_change_threshold = Share::percent(5);
  want.log_level = "info";
  EXPECT_EQ(*config, want);
}

TEST(GpuConfigFile, KeepsTheDefaultsOfWhatItDoesNotSay) {
  EXPECT_EQ(parse_gpu_config("", "x"), GpuConfig());
  EXPECT_EQ(parse_gpu_config("# nothing\n", "x"), GpuConfig());
  const auto config = parse_gpu_config(
      "gpu_resource: {NPU: huawei.com/Ascend910, dcu: hygon.com/dcunum}\n"
      "gpu_memory_specs: {rtx 3090: 24, a100-40g: 40G, G2: 512M}\n"
      "resource_change_threshold: 0\nlog_level: WARNING\n",
      "x");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->resources.names.at("npu"), "huawei.com/Ascend910");
  EXPECT_EQ(config->resources.names.at("amd"), "amd.com/gpu");
  EXPECT_EQ(memory_spec(*config, "RTX3090"), Memory::gib(24));
  EXPECT_EQ(memory_spec(*config, "A100-40G"), Memory::gib(40));
  EXPECT_EQ(memory_spec(*config, "G2"), Memory::mib(512));
  EXPECT_EQ(config->resource_change_threshold, Share{});
  EXPECT_EQ(config->log_level, "warning");
  EXPECT_EQ(resource_name(*parse_gpu_request("1(dcu)", config->resources), config->resources),
            "hygon.com/dcunum");
}

TEST(GpuConfigFile, NamesLineAndKeyOfWhatIsWrong) {
  struct Row {
    std::string_view text;
    std::string_view message;
  };
  for (const Row& row :
       {Row{"\ngpu_memory_spec:\n  T4: 16\n",
            "f.yaml:2: gpu_memory_spec: unknown key; did you mean 'gpu_memory_specs'?"},
        Row{"gpu_resource:\n  gpu: x\n  amd: nogood\n",
            "f.yaml:2: gpu_resource.gpu: 'x' is not the name of a resource"},
        Row{"gpu_resource: nvidia\n", "f.yaml:1: gpu_resource: has to be a map"},
        Row{"gpu_resource:\n  V100: a.b/c\n", "f.yaml:2: gpu_resource.V100: a vendor is a word"},
        Row{"gpu_resource:\n  gpu: [1]\n", "f.yaml:2: gpu_resource.gpu: has to be one word"},
        Row{"gpu_memory_specs:\n  fast: 16\n", "f.yaml:2: gpu_memory_specs.fast: is not a model"},
        Row{"gpu_memory_specs:\n  T4: lots\n",
            "f.yaml:2: gpu_memory_specs.T4: 'lots' is not an amount of memory"},
        Row{"gpu_memory_specs:\n  T4: -1\n", "f.yaml:2: gpu_memory_specs.T4: '-1' is not"},
        Row{"gpu_memory_specs:\n  T4: 16\n  t4: 15\n",
            "f.yaml:3: gpu_memory_specs.t4: T4 is given twice"},
        Row{"monitor_update_interval: 0\n",
            "f.yaml:1: monitor_update_interval: '0' is not a whole number from 1 to 86400"},
        Row{"resource_change_threshold: 5\n",
            "f.yaml:1: resource_change_threshold: '5' is not a fraction, such as 0.05"},
        Row{"resource_change_threshold: 0.5(T4)\n",
            "f.yaml:1: resource_change_threshold: '0.5(T4)'"},
        Row{"log_level: LOUD\n", "f.yaml:1: log_level: 'LOUD' is not one of DEBUG, INFO"},
        Row{"default_gpu_resource_name: gpu\n", "f.yaml:1: default_gpu_resource_name: 'gpu' is"},
        Row{"- 1\n", "f.yaml:1: has to be a map with gpu_resource, "},
        Row{"a: [\n", "f.yaml:2: "}}) {
    const auto config = parse_gpu_config(std::string(row.text), "f.yaml");
    ASSERT_FALSE(config) << row.text;
    EXPECT_EQ(config.error().code, Code::Usage);
    EXPECT_TRUE(config.error().message.starts_with(row.message)) << config.error().message;
  }
}

TEST(GpuConfigFile, EveryLineThatIsWrongIsNamed) {
  const auto said = [](const std::string& text) {
    std::vector<std::string> lines;
    for (const Problem& problem : check_gpu_config(text, "f.yaml").problems) {
      lines.push_back(problem_text(problem));
    }
    return lines;
  };
  EXPECT_EQ(said(std::string(kDocument)), std::vector<std::string>());
  EXPECT_EQ(said(""), std::vector<std::string>());
  const std::vector<std::string> want = {
      "f.yaml:2: gpu_resource.gpu: 'x' is not the name of a resource, such as nvidia.com/gpu",
      "f.yaml:5: gpu_memory_specs.fast: is not a model of a GPU",
      "f.yaml:6: gpu_memory_specs.T4: 'lots' is not an amount of memory; write 512M, 20G or 1.5T "
      "(a bare number "
      "is MiB)",
      "f.yaml:7: monitor_update_intervall: unknown key; did you mean 'monitor_update_interval'?",
      "f.yaml:8: log_level: 'LOUD' is not one of DEBUG, INFO, WARNING, ERROR"};
  EXPECT_EQ(said("gpu_resource:\n  gpu: x\n  amd: amd.com/gpu\ngpu_memory_specs:\n  fast: 16\n"
                 "  T4: lots\nmonitor_update_intervall: 5\nlog_level: LOUD\n"),
            want);
  EXPECT_EQ(said("gpu_memory_specs:\n  T4: 16\n  t4: 15\n"),
            std::vector<std::string>{"f.yaml:3: gpu_memory_specs.t4: T4 is given twice"});
  EXPECT_EQ(said("a: [\n").size(), 1U);
  EXPECT_EQ(said("- 1\n").size(), 1U);
}

TEST(GpuConfigFile, IsPrintedWholeInTheDocuments) {
  const auto want = parse_gpu_config(std::string(kDocument), "gpu_config.yaml");
  for (const char* name : {"/docs/configuration.md", "/docs/configuration.zh-CN.md"}) {
    const std::string text = os::read_file(std::string(GFLOW_SOURCE_DIR) + name).value();
    const std::size_t start = text.find("```yaml\n") + 8;
    EXPECT_EQ(parse_gpu_config(text.substr(start, text.find("```", start) - start), name), want);
  }
}

TEST(GpuConfigFile, NeedNotBeThereUnlessItWasNamed) {
  EXPECT_EQ(read_gpu_config("/nonexistent/gflow.toml"), GpuConfig());
  EXPECT_EQ(read_gpu_config_file("/nonexistent/gpu_config.yaml").error().code, Code::NotFound);
}

}  // namespace
}  // namespace gflow::config
