// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "core/job_description.h"
#include "core/requests.h"

namespace gflow {
namespace {

TEST(Names, AreMadeUpFromTheNumberAlone) {
  EXPECT_EQ(made_up_name(1), made_up_name(1));
  std::set<std::string> names;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    const std::string name = made_up_name(seed);
    names.insert(name);
    EXPECT_EQ(std::ranges::count(name, '-'), 2) << name;
    EXPECT_EQ(name.find_first_of("0123456789"), name.size() - 4) << name;
    EXPECT_LE(name.size(), 20U) << name;
    EXPECT_TRUE(check_name(name)) << name;
  }
  EXPECT_GT(names.size(), 9'950U);
  EXPECT_EQ(made_up_name(UINT64_MAX).find_last_of('-'), made_up_name(UINT64_MAX).size() - 5);
}

TEST(Names, AnyOneLineOfTextWillDo) {
  for (const std::string_view name : {"a", "my job", "训练 1", "🚀", "lr0.1_bs32", "-x", "42"}) {
    EXPECT_EQ(check_name(name), std::string(name));
  }
  EXPECT_TRUE(check_name(std::string(128, 'x')));
  std::string wide;
  for (int i = 0; i < 128; ++i) wide += "训";
  EXPECT_TRUE(check_name(wide));
}

TEST(Names, RefusalsSayWhy) {
  struct Row {
    std::string name;
    std::string_view message;
  };
  const std::vector<Row> rows = {
      {"", "a job name cannot be empty"},
      {" \t", "a job name cannot be empty"},
      {std::string(129, 'x'), "a job name has at most 128 characters, this one has 129"},
      {std::string(1 << 20, '\xff'),
       "a job name has at most 128 characters, this one has 1048576"}};
  for (const Row& row : rows) {
    EXPECT_EQ(check_name(row.name).error(), (Error{Code::Usage, std::string(row.message)}));
  }
  EXPECT_EQ(check_name("a\xff").error(),
            (Error{Code::Usage, "'a\\xff' is not a job name: it is not UTF-8"}));
}

TEST(Names, HaveOnlyCharactersThatCanBeSeen) {
  struct Row {
    std::string name;
    std::string_view unseen;
  };
  const std::vector<Row> rows = {{"\u00a0", "U+00A0"},
                                 {"a\u3000b", "U+3000"},
                                 {"a\u200bb", "U+200B"},
                                 {"\u0301", "U+0301"},
                                 {"a \u0301", "U+0301"},
                                 {"a\U000e0041", "U+E0041"},
                                 {"\u061ca", "U+061C"},
                                 {"a\u200f", "U+200F"},
                                 {"a\u202e", "U+202E"},
                                 {"a\nb", "U+000A"},
                                 {"a\x1b[2J", "U+001B"},
                                 {"a\x7f", "U+007F"},
                                 {"\u200da", "U+200D"},
                                 {"\ufeffa", "U+FEFF"},
                                 {"a\u00ad", "U+00AD"},
                                 {"\u3164", "U+3164"}};
  for (const Row& row : rows) {
    const auto checked = check_name(row.name);
    ASSERT_FALSE(checked) << row.unseen;
    EXPECT_EQ(checked.error().message,
              fmt::format("a job name has only characters that can be seen, not {}", row.unseen));
    JobSpec spec;
    spec.project = row.name;
    EXPECT_EQ(check_fields(spec).error().message,
              fmt::format("its project has only characters that can be seen, not {}", row.unseen));
  }
  for (const std::string_view name :
       {"e\u0301t\u00e9", "👩\u200d💻", "❤\ufe0f", "می\u200cخواهم", "한글", "ว่าง"}) {
    EXPECT_TRUE(check_name(name)) << name;
  }
}

}  // namespace
}  // namespace gflow
