// SPDX-License-Identifier: Apache-2.0
#include "attempt/claim.h"

#include <gtest/gtest.h>

namespace gflow::attempt {
namespace {

TEST(Claim, TextAndValue) {
  using namespace std::string_literals;
  const struct {
    const char* name;
    std::string text;
    std::optional<Claim> claim;
  } kTable[] = {
      {"a shim's", "shim 1 4711 99887766 b-1\n", ShimClaim{1, 4711, 99887766, "b-1"}},
      {"revoked", "revoked\n", Revoked{}},
      {"without line end", "revoked", Revoked{}},
      {"empty", "", std::nullopt},
      {"a word more", "revoked by me\n", std::nullopt},
      {"pid 0", "shim 1 0 5 b\n", std::nullopt},
      {"negative pid", "shim 1 -5 5 b\n", std::nullopt},
      {"pid too large", "shim 1 2147483648 5 b\n", std::nullopt},
      {"no boot", "shim 1 5 5 \n", std::nullopt},
      {"boot with spaces", "shim 1 5 5 a b\n", std::nullopt},
      {"cut short", "shim 1 5", std::nullopt},
      {"a second line", "shim 1 5 5 b\nshim 1 6 6 b\n", std::nullopt},
      {"zeros", std::string(100, '\0'), std::nullopt},
      {"NUL in the boot", "shim 1 5 5 b\0\n"s, std::nullopt},
  };
  for (const auto& row : kTable) EXPECT_EQ(decode_claim(row.text), row.claim) << row.name;
  for (const Claim& claim : {Claim(ShimClaim{1, 7, 8, "boot"}), Claim(Revoked{})}) {
    EXPECT_EQ(decode_claim(encode_claim(claim)), claim);
  }
}

TEST(Status, TextAndValue) {
  const struct {
    const char* name;
    const char* line;
    std::optional<StatusLine> value;
  } kTable[] = {
      {"started", "started 12", ShimStarted{12}},
      {"failed", "failed 28 no space", ShimFailed{"no space", 28}},
      {"failed without an error", "failed 0 two words", ShimFailed{"two words"}},
      {"failed by a word", "failed no space", std::nullopt},
      {"pid 0", "started 0", std::nullopt},
      {"not a number", "started x", std::nullopt},
      {"another word", "stopped 5", std::nullopt},
      {"empty", "", std::nullopt},
  };
  for (const auto& row : kTable) EXPECT_EQ(decode_status(row.line), row.value) << row.name;
  EXPECT_EQ(encode_status(ShimFailed{"two\nlines", 5}), "failed 5 two lines\n");
  EXPECT_EQ(encode_status(ShimStarted{5}), "started 5\n");
}

}  // namespace
}  // namespace gflow::attempt
