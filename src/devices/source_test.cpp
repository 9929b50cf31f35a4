// SPDX-License-Identifier: Apache-2.0
#include "devices/source.h"

#include <gtest/gtest.h>

namespace gflow::devices {
namespace {

SourceOptions without_driver() {
  SourceOptions options;
  options.probe = GFLOW_GPUMON;
  options.environment = {"GFLOW_NVML_LIBRARY=/nonexistent/libnvidia-ml.so.1"};
  return options;
}

TEST(OpenSource, SimulatedMachineNeverChanges) {
  const auto source = open_source("sim:2xRTX3090+1xA100", {});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->machine().source, "sim:2xRTX3090+1xA100");
  EXPECT_EQ((*source)->machine().devices.size(), 3U);
  EXPECT_EQ((*source)->fd(), -1);
  EXPECT_EQ((*source)->interval(), std::chrono::milliseconds(0));
  (*source)->refresh();
  EXPECT_FALSE((*source)->poll());
}

TEST(OpenSource, NoneHasNoDevices) {
  const auto source = open_source("none", {});
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->machine().source, "none");
  EXPECT_TRUE((*source)->machine().devices.empty());
}

TEST(OpenSource, Errors) {
  struct Case {
    const char* text;
    Code code;
    const char* says;
  };
  const Case cases[] = {
      {"", Code::Usage, "unknown device source ''"},
      {"nvidia", Code::Usage, "auto, none, nvml, sim:8xH100 or sim:FILE.yaml"},
      {"nvml2", Code::Usage, "unknown device source 'nvml2'"},
      {"sim:", Code::Usage, "unknown GPU model ''"},
      {"sim:8xH1000", Code::Usage, "did you mean 'H100'?"},
      {"sim:/nonexistent/m.yaml", Code::NotFound, "/nonexistent"},
      {"sim:no-such-file.yml", Code::NotFound, "no-such-file.yml"},
      {"nvml", Code::Failure, "NVIDIA driver library libnvidia-ml.so.1 is not installed"},
  };
  for (const Case& c : cases) {
    const auto source = open_source(c.text, without_driver());
    ASSERT_FALSE(source) << c.text;
    EXPECT_EQ(source.error().code, c.code) << c.text;
    EXPECT_NE(source.error().message.find(c.says), std::string::npos) << source.error().message;
  }
}

TEST(OpenSource, AutoSaysWhatIsMissing) {
  SourceOptions no_probe;
  no_probe.probe = "/nonexistent/gflow-gpumon";
  no_probe.deadline = std::chrono::milliseconds(1000);
  const auto driverless = open_source("auto", without_driver());
  ASSERT_TRUE(driverless);
  EXPECT_EQ((*driverless)->machine().source, "none");
  EXPECT_TRUE((*driverless)
                  ->machine()
                  .note.starts_with("NVIDIA driver library libnvidia-ml.so.1 is not installed"))
      << (*driverless)->machine().note;
  const auto probeless = open_source("auto", no_probe);
  ASSERT_TRUE(probeless);
  EXPECT_TRUE((*probeless)->machine().devices.empty());
  EXPECT_NE((*probeless)->machine().note.find("/nonexistent/gflow-gpumon"), std::string::npos)
      << (*probeless)->machine().note;
}

}  // namespace
}  // namespace gflow::devices
