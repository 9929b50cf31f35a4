// SPDX-License-Identifier: Apache-2.0
#include "core/cpu_list.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace gflow {
namespace {

TEST(CpuList, ReadsWhatTheKernelWrites) {
  const std::vector<std::pair<std::string, std::vector<int>>> cases = {
      {"", {}},
      {"\n", {}},
      {"0", {0}},
      {"0-3", {0, 1, 2, 3}},
      {"0-1,8,10-11\n", {0, 1, 8, 10, 11}},
      {"3,1-2,2", {1, 2, 3}}};
  for (const auto& [text, cpus] : cases) {
    const auto read = parse_cpu_list(text);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_EQ(*read, cpus) << text;
  }
}

TEST(CpuList, RefusesAnythingElse) {
  for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "0-70000", "1 2"}) {
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  }
}

TEST(CpuList, IsWrittenAsRanges) {
  EXPECT_EQ(cpu_list_text({}), "");
  EXPECT_EQ(cpu_list_text({7}), "7");
  EXPECT_EQ(cpu_list_text({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
}

}  // namespace
}  // namespace gflow
