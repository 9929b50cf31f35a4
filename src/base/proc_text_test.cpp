// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "base/proc_text.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

const std::string kAfterParent = " 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 9999 1\n";

TEST(ProcStat, Lines) {
  const struct {
    const char* name;
    std::string text;
    std::optional<ProcessFacts> facts;
  } kTable[] = {
      {"plain", "12 (sh) S 3" + kAfterParent, ProcessFacts{12, 3, 'S', 777}},
      {"a name made to deceive",
       "12 (a) R 99 (b) Z 3" + kAfterParent,
       ProcessFacts{12, 3, 'Z', 777}},
      {"only forked",
       "12 (sh) Z 3 1 1 0 -1 4227148 1 2 3 4 5 6 7 8 20 0 1 0 777 9999 1\n",
       ProcessFacts{12, 3, 'Z', 777, true, true}},
      {"its first thread has ended",
       "12 (sh) Z 3 1 1 0 -1 4227084 1 2 3 4 5 6 7 8 20 0 2 0 777 9999 1\n",
       ProcessFacts{12, 3, 'Z', 777, false, true, 2}},
      {"cut short", "12 (sh) S 3 1 1", std::nullopt},
      {"no name", "12 sh S 3", std::nullopt},
      {"empty", "", std::nullopt},
      {"pid is no number", "x (sh) S 3" + kAfterParent, std::nullopt},
  };
  for (const auto& row : kTable) EXPECT_EQ(parse_proc_stat(row.text), row.facts) << row.name;
}

TEST(ProcStat, DeadIsOneWithoutAThread) {
  ProcessFacts process{12, 3, 'Z', 777};
  EXPECT_TRUE(process.is_dead());
  process.threads = 2;
  EXPECT_FALSE(process.is_dead());
  EXPECT_TRUE(process.has_dead_leader());
}

TEST(Descendants, OfAProcess) {
  const ProcessFacts init{1, 0, 'S', 1};
  const ProcessFacts a{10, 1, 'S', 2};
  const ProcessFacts b{11, 10, 'S', 3};
  const ProcessFacts c{12, 11, 'S', 4};
  const ProcessFacts other{20, 1, 'S', 5};
  EXPECT_EQ(descendants_of(10, {c, other, b, a, init}), (std::vector<ProcessFacts>{b, c}));
  EXPECT_TRUE(descendants_of(12, {init, a, b, c, other}).empty());
  // Two processes that name each other as parent: a list read while pids were reused.
  EXPECT_EQ(descendants_of(30, {{31, 30, 'S', 1}, {30, 31, 'S', 2}}).size(), 2U);
}

TEST(KeyedValue, Lines) {
  const char* text = "populated 1\nfrozen 0\noom_kill 12\nbad x\n";
  EXPECT_EQ(keyed_value(text, "populated"), 1U);
  EXPECT_EQ(keyed_value(text, "oom_kill"), 12U);
  EXPECT_EQ(keyed_value(text, "oom"), std::nullopt);
  EXPECT_EQ(keyed_value(text, "bad"), std::nullopt);
  EXPECT_EQ(keyed_value("", "populated"), std::nullopt);
}

TEST(FileLockLimit, Lines) {
  const std::string before =
      "Limit  Soft Limit  Hard Limit  Units     \nMax address space  1  2  bytes\n";
  const struct {
    std::string text;
    std::optional<std::uint64_t> limit;
  } kTable[] = {
      {before + "Max file locks            2305843009213706297  77  locks     \n",
       2305843009213706297},
      {before + "Max file locks            unlimited            unlimited            locks\n",
       std::nullopt},
      {before, std::nullopt},
      {"Max file locks ", std::nullopt},
      {"", std::nullopt},
  };
  for (const auto& row : kTable) EXPECT_EQ(file_lock_limit(row.text), row.limit) << row.text;
}

TEST(InnerNamespace, Lines) {
  EXPECT_FALSE(is_in_inner_namespace("Name:\tsh\nNSpid:\t25845\nNSpgid:\t25845\t1\n"));
  EXPECT_TRUE(is_in_inner_namespace("Name:\tsh\nNSpid:\t25845\t7\n"));
  EXPECT_TRUE(is_in_inner_namespace("NSpid:\t25845\t7\t1"));
  EXPECT_FALSE(is_in_inner_namespace("Name:\tsh\n"));
  EXPECT_FALSE(is_in_inner_namespace(""));
}

TEST(RealUser, Lines) {
  EXPECT_EQ(real_user("Name:\tsh\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n"), 1000U);
  EXPECT_EQ(real_user("Uid:\t0\t0\t0\t0"), 0U);
  EXPECT_EQ(real_user("Name:\tUid:\n"), std::nullopt);
  EXPECT_EQ(real_user("Uid:\t\n"), std::nullopt);
  EXPECT_EQ(real_user(""), std::nullopt);
}

TEST(Pids, Lines) {
  EXPECT_EQ(parse_pids("1\n22\nx\n-3\n0\n44"), (std::vector<std::int32_t>{1, 22, 44}));
  EXPECT_EQ(parse_pids("1 22 44 "), (std::vector<std::int32_t>{1, 22, 44}));
  EXPECT_TRUE(parse_pids("").empty());
}

}  // namespace
}  // namespace gflow
