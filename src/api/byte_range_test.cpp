// SPDX-License-Identifier: Apache-2.0
#include "api/byte_range.h"

#include <gtest/gtest.h>

namespace gflow::api {
namespace {

using Kind = AskedRange::Kind;

TEST(ByteRange, IsReadAsTheStandardHasIt) {
  struct Case {
    const char* header;
    std::uint64_t size;
    AskedRange expected;
  };
  constexpr AskedRange kWhole{};
  constexpr AskedRange kOutside{Kind::Outside, {}};
  const Case cases[] = {
      {"bytes=0-0", 10, {Kind::Part, {0, 0}}},
      {"bytes=2-5", 10, {Kind::Part, {2, 5}}},
      {"BYTES= 2-5 ", 10, {Kind::Part, {2, 5}}},
      {"bytes=2-", 10, {Kind::Part, {2, 9}}},
      {"bytes=2-18446744073709551615", 10, {Kind::Part, {2, 9}}},
      {"bytes=-3", 10, {Kind::Part, {7, 9}}},
      {"bytes=-30", 10, {Kind::Part, {0, 9}}},
      {"bytes=10-", 10, kOutside},
      {"bytes=-0", 10, kOutside},
      {"bytes=0-", 0, kOutside},
      {"bytes=-1", 0, kOutside},
      {"", 10, kWhole},
      {"bytes=", 10, kWhole},
      {"bytes=-", 10, kWhole},
      {"bytes=5", 10, kWhole},
      {"bytes=5-2", 10, kWhole},
      {"bytes=0-1,3-4", 10, kWhole},
      {"bytes=+1-2", 10, kWhole},
      {"bytes=0x1-2", 10, kWhole},
      {"lines=0-1", 10, kWhole},
  };
  for (const Case& c : cases) EXPECT_EQ(read_range(c.header, c.size), c.expected) << c.header;
}

}  // namespace
}  // namespace gflow::api
