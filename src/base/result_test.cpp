// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <set>

namespace gflow {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return fail(Code::Usage, "odd");
  return number / 2;
}

Result<int> quarter(int number) {
  GF_CHECK(half(number));
  const int once = GF_TRY(half(number));
  return GF_TRY(half(once));
}

TEST(Result, TryPassesTheErrorOn) {
  EXPECT_EQ(quarter(8), 2);
  EXPECT_EQ(quarter(6).error(), (Error{Code::Usage, "odd"}));
  EXPECT_EQ(quarter(7).error(), (Error{Code::Usage, "odd"}));
}

TEST(Result, ContextIsPutInFront) {
  const Result<int> wrapped = with_context({Code::NotFound, "no such job"}, "job 7");
  EXPECT_EQ(wrapped.error(), (Error{Code::NotFound, "job 7: no such job"}));
}

TEST(Result, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int code = 1; code <= 11; ++code) names.insert(code_name(static_cast<Code>(code)));
  EXPECT_EQ(names,
            (std::set<std::string_view>{"failure",
                                        "usage",
                                        "not_found",
                                        "unreachable",
                                        "permission",
                                        "wrong_state",
                                        "infeasible",
                                        "timeout",
                                        "exhausted",
                                        "damaged",
                                        "key_reused"}));
}

}  // namespace
}  // namespace gflow
