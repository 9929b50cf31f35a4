// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace gflow {
namespace {

TEST(Memory, ReadsAmounts) {
  struct Row {
    std::string_view text;
    std::int64_t bytes;
  };
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  const std::array rows = {Row{"512", 512 << 20},
                           Row{"512M", 512 << 20},
                           Row{"512mb", 512 << 20},
                           Row{"2048K", 2 << 20},
                           Row{"20G", 20 * kGib},
                           Row{"20Gi", 20 * kGib},
                           Row{"20GB", 20 * kGib},
                           Row{"1.5GiB", kGib + kGib / 2},
                           Row{".5G", kGib / 2},
                           Row{" 8 g ", 8 * kGib},
                           Row{"1T", 1024 * kGib},
                           Row{"0.001K", 1},
                           Row{"4194304T", std::int64_t{1} << 62}};
  for (const Row& row : rows) {
    const auto memory = parse_memory(row.text);
    ASSERT_TRUE(memory) << row.text;
    EXPECT_EQ(memory->bytes, row.bytes) << row.text;
  }
}

TEST(Memory, RefusesWhatIsNoAmount) {
  for (const std::string_view text : {"",
                                      " ",
                                      "0",
                                      "0G",
                                      "-1",
                                      "-1G",
                                      "+1G",
                                      "G",
                                      "1.G.",
                                      "1e3",
                                      "0x10",
                                      "inf",
                                      "nan",
                                      "infinityG",
                                      "1P",
                                      "1Gx",
                                      "1GiBs",
                                      "0.0000001K",
                                      "4194305T",
                                      "99999999999999999999999999999999G",
                                      "1,5G",
                                      "8G,0.5",
                                      "1\xef\xbc\xa7",
                                      "1G\x1b[31m"}) {
    const auto memory = parse_memory(text);
    ASSERT_FALSE(memory) << text;
    EXPECT_EQ(memory.error().code, Code::Usage);
    EXPECT_EQ(memory.error().message.find('\x1b'), std::string::npos);
  }
  EXPECT_EQ(parse_memory("lots").error().message,
            "'lots' is not an amount of memory; write 512M, 20G or 1.5T (a bare number is MiB)");
}

TEST(Memory, IsShownInTheLargestUnit) {
  struct Row {
    Memory memory;
    std::string_view text;
  };
  const std::vector<Row> rows = {{Memory{0}, "0B"},
                                 {Memory{1}, "1B"},
                                 {Memory{1023}, "1K"},
                                 {Memory{1000}, "1000B"},
                                 {Memory::mib(512), "512M"},
                                 {Memory::gib(8), "8G"},
                                 {Memory::mib(1536), "1.5G"},
                                 {Memory{Memory::gib(1).bytes - 1}, "1G"},
                                 {Memory{Memory::gib(1).bytes + 1}, "1G"},
                                 {Memory::gib(2048), "2T"},
                                 {Memory::mib(24564), "23.99G"}};
  for (const Row& row : rows) EXPECT_EQ(memory_text(row.memory), row.text);
}

TEST(Memory, IsToldFromWhatStandsBesideIt) {
  const Memory eight = Memory::gib(8);
  EXPECT_EQ(memory_text(eight, eight), "8G");
  EXPECT_EQ(memory_text(Memory{eight.bytes + Memory::mib(1).bytes}, eight), "8193M");
  EXPECT_EQ(memory_text(Memory{eight.bytes + 4096}, eight), "8388612K");
  EXPECT_EQ(memory_text(Memory{eight.bytes + 1}, eight), "8589934593B");
  EXPECT_EQ(memory_text(Memory::gib(14), eight), "14G");
  EXPECT_EQ(memory_text(Memory::mib(512), Memory{}), "512M");
}

TEST(Memory, WhatIsShownReadsBackNearly) {
  for (std::int64_t bytes = 2000; bytes < std::int64_t{1} << 60; bytes = bytes * 3 + 7) {
    const auto back = parse_memory(memory_text(Memory{bytes}));
    ASSERT_TRUE(back);
    EXPECT_NEAR(static_cast<double>(back->bytes) / static_cast<double>(bytes), 1.0, 0.006);
  }
}

}  // namespace
}  // namespace gflow
