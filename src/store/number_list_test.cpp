// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "store/number_list.h"

#include <gtest/gtest.h>

#include "store/payload_row.h"

namespace gflow::store {
namespace {

using Numbers = std::vector<std::uint64_t>;

TEST(NumberListTest, KeepsOrderAndFoldsRuns) {
  struct Case {
    Numbers numbers;
    const char* text;
  };
  const Case cases[] = {{{}, ""},
                        {{0}, "0"},
                        {{5, 6, 7, 20}, "5-7,20"},
                        {{7, 6, 5}, "7,6,5"},
                        {{1, 1, 2}, "1,1-2"},
                        {{18446744073709551615U}, "18446744073709551615"},
                        {{18446744073709551615U, 0}, "18446744073709551615,0"}};
  for (const Case& c : cases) {
    EXPECT_EQ(write_numbers(c.numbers), c.text);
    EXPECT_EQ(read_numbers(c.text), c.numbers) << c.text;
  }
}

TEST(NumberListTest, RefusesAnythingElse) {
  for (const char* text :
       {",", "1,", "-", "1-", "-1", "2-1", "a", "1 ", "1-2-3", "0-99999999999"}) {
    EXPECT_EQ(read_numbers(text), std::nullopt) << text;
  }
}

TEST(PackTest, RefusesWhatIsCutShort) {
  const std::string packed = pack({"ab", "", std::string(300, 'x')});
  EXPECT_EQ(unpack(packed), (std::vector<std::string>{"ab", "", std::string(300, 'x')}));
  for (std::size_t size = 1; size < packed.size(); ++size) {
    if (size == 6 || size == 10) continue;  // ends between two strings
    EXPECT_EQ(unpack(std::string_view(packed).substr(0, size)), std::nullopt) << size;
  }
}

}  // namespace
}  // namespace gflow::store
