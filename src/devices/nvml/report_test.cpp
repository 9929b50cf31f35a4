// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/report.h"

#include <gtest/gtest.h>

namespace gflow::devices::nvml {
namespace {

Report sample() {
  DeviceReport full{"NVIDIA H100 80GB HBM3",
                    "GPU-1",
                    "0000:3b:00.0",
                    0,
                    Memory::mib(81559),
                    Memory::mib(19818),
                    97,
                    52,
                    432'000,
                    700'000,
                    false,
                    {},
                    "",
                    {},
                    {},
                    "",
                    {{{4242, "alice", "python", Memory::gib(19)}, ProcessKind::Compute},
                     {{900, "", "Xorg", std::nullopt}, ProcessKind::Graphics}},
                    {},
                    "",
                    {{"0000:5e:00.0", PathClass::Pxb, 12}, {"0000:b1:00.0", PathClass::Sys, 0}},
                    18,
                    3,
                    {DeviceNodes::one(195, 3), DeviceNodes::one(226, 129)}};
  DeviceReport empty;
  empty.missing = {{"power", "Not Supported"}, {"processes", "Insufficient Permissions"}};
  empty.fatal = "GPU is lost";
  DeviceReport cut;
  cut.mig = true;
  cut.slices = {{"NVIDIA H100 80GB HBM3 MIG 3g.40gb",
                 "MIG-1",
                 "3g.40gb",
                 2,
                 0,
                 Memory::mib(40448),
                 Memory::mib(11091),
                 {{{21180, "alice", "memhog", Memory::mib(2296)}, ProcessKind::Compute}},
                 {},
                 "",
                 {DeviceNodes::one(507, 12)}},
                {"",
                 "MIG-2",
                 "1c.3g.40gb",
                 9,
                 1,
                 {},
                 {},
                 {},
                 {{"memory_total", "Unknown Error"}},
                 "GPU requires reset"}};
  cut.mig_unread = "Insufficient Permissions";
  cut.kinds = {{"3g.40gb", 4, {0, 4}, 2, Memory::mib(40448)}};
  cut.instances = {{9, "3g.40gb", 4, 4}};
  cut.room_unread = "Unknown Error";
  return {
      "", "590.48.01", {full, empty, cut}, {"GPU is lost"}, {{0, "0-23,48-71"}}, {{195, 0, 247}}};
}

TEST(Report, ReadsWhatItWrites) {
  const auto read = from_line(to_line(sample()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, sample());
}

TEST(Report, WhatIsNotKnownIsNull) {
  const std::string line = to_line(sample());
  EXPECT_NE(line.find("\"power_milliwatts\":null"), std::string::npos) << line;
  EXPECT_NE(line.find("\"missing\":{\"power\":\"Not Supported\""), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(Report, AnyCutOfALineIsAnErrorAndNothingElse) {
  const std::string line = to_line(sample());
  for (std::size_t at = 0; at < line.size(); ++at)
    EXPECT_FALSE(from_line(line.substr(0, at))) << at;
  for (const char* wrong : {"{}", "[]", "null", "{\"version\":2}", "\x80", "{\"version\":1}"}) {
    EXPECT_FALSE(from_line(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace gflow::devices::nvml
