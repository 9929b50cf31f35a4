// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace gflow {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

TEST(Duration, ReadsTheFormsPeopleType) {
  struct Row {
    std::string_view text;
    seconds duration;
  };
  const std::array rows = {Row{"30", 30min},
                           Row{"10:30", 10min + 30s},
                           Row{"4:00:00", 4h},
                           Row{"100:00:00", 100h},
                           Row{"1-12:00:00", 36h},
                           Row{"0-0:30:00", 30min},
                           Row{"2-6", 54h},
                           Row{"2-6:30", 54h + 30min},
                           Row{"90s", 90s},
                           Row{"30m", 30min},
                           Row{"2h", 2h},
                           Row{"1h30m", 90min},
                           Row{"3D", 72h},
                           Row{" 5 ", 5min},
                           Row{"3650d", 3650 * 24h}};
  for (const Row& row : rows) EXPECT_EQ(parse_duration(row.text), row.duration) << row.text;
}

TEST(Duration, RefusesTheRest) {
  for (const std::string_view text : {"",
                                      " ",
                                      "0",
                                      "0s",
                                      "0:00",
                                      "-5",
                                      "5-",
                                      "-",
                                      "+5",
                                      "1.5h",
                                      "h",
                                      "1h30",
                                      "1x",
                                      "1 h",
                                      "1::2",
                                      ":",
                                      "1:2:3:4",
                                      "1-1:2:3:4",
                                      "1-2-3",
                                      "1:30m",
                                      "3651d",
                                      "3651-0",
                                      "99999999999999999999",
                                      "9223372036854775807s",
                                      "5256001",
                                      "infinite",
                                      "1h\x01"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
  EXPECT_EQ(parse_duration("soon\x1b").error(),
            (Error{Code::Usage,
                   "'soon\\x1b' is not a duration; write 30 (minutes), 4:00:00, 1-12:00:00, 90s or "
                   "1h30m"}));
}

TEST(Duration, SaysThatOneIsTooLong) {
  for (const std::string_view text : {"90000h",
                                      "3651d",
                                      "5256001",
                                      "87600:00:01",
                                      "3650-00:00:01",
                                      "99999999999999999999",
                                      "9999999999999d9999999999999d"}) {
    EXPECT_EQ(parse_duration(text).error().message,
              fmt::format("'{}' is longer than 10 years, the longest duration there is", text));
  }
  EXPECT_TRUE(parse_duration("3650d"));
  EXPECT_TRUE(parse_duration("87600:00:00"));
}

TEST(Duration, IsShownAsAClock) {
  EXPECT_EQ(clock_text(0s), "00:00:00");
  EXPECT_EQ(clock_text(3661s), "01:01:01");
  EXPECT_EQ(clock_text(1234h + 5s), "1234:00:05");
  EXPECT_EQ(clock_text(-5s), "00:00:00");
}

TEST(Duration, IsShownInWords) {
  EXPECT_EQ(duration_text(0s), "0s");
  EXPECT_EQ(duration_text(-1s), "0s");
  EXPECT_EQ(duration_text(45s), "45s");
  EXPECT_EQ(duration_text(90min), "1h30m");
  EXPECT_EQ(duration_text(52h), "2d4h");
  EXPECT_EQ(duration_text(86400s + 1s), "1d1s");
}

TEST(Duration, WhatIsShownReadsBack) {
  for (std::int64_t count = 1; count < 10LL * 365 * 86400; count = count * 2 + 1) {
    EXPECT_EQ(parse_duration(duration_text(seconds(count))), seconds(count));
    EXPECT_EQ(parse_duration(clock_text(seconds(count))), seconds(count));
  }
}

WallTime at(std::int64_t unix_milliseconds) {
  return WallTime(std::chrono::milliseconds(unix_milliseconds));
}

TEST(Rfc3339, IsWrittenInUtc) {
  EXPECT_EQ(rfc3339(at(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(rfc3339(at(1772366400250)), "2026-03-01T12:00:00.250Z");
  EXPECT_EQ(rfc3339(at(-1)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(rfc3339(at(951782400000)), "2000-02-29T00:00:00.000Z");
}

TEST(Rfc3339, ReadsAnyOffset) {
  struct Row {
    std::string_view text;
    std::int64_t unix_milliseconds;
  };
  const std::array rows = {Row{"2026-03-01T12:00:00Z", 1772366400000},
                           Row{"2026-03-01t12:00:00z", 1772366400000},
                           Row{"2026-03-01 12:00:00Z", 1772366400000},
                           Row{"2026-03-01T20:00:00+08:00", 1772366400000},
                           Row{"2026-03-01T06:30:00-05:30", 1772366400000},
                           Row{"2026-03-01T12:00:00.25Z", 1772366400250},
                           Row{"2026-03-01T12:00:00.250999999Z", 1772366400250},
                           Row{"2016-12-31T23:59:60Z", 1483228800000},
                           Row{"1969-12-31T23:59:59.999Z", -1}};
  for (const Row& row : rows) {
    EXPECT_EQ(parse_rfc3339(row.text), at(row.unix_milliseconds)) << row.text;
  }
}

TEST(Rfc3339, RefusesTheRest) {
  for (const std::string_view text : {"",
                                      "2026-03-01",
                                      "2026-03-01T12:00Z",
                                      "2026-03-01T12:00:00",
                                      "2026-03-01x12:00:00Z",
                                      "2026-02-29T12:00:00Z",
                                      "2026-13-01T12:00:00Z",
                                      "2026-00-01T12:00:00Z",
                                      "2026-03-01T24:00:00Z",
                                      "2026-03-01T12:60:00Z",
                                      "2026-03-01T12:00:61Z",
                                      "2026-03-01T12:00:00.Z",
                                      "2026-03-01T12:00:00.5",
                                      "2026-03-01T12:00:00+0800",
                                      "2026-03-01T12:00:00+24:00",
                                      "2026-03-01T12:00:00+08:00x",
                                      "2026-3-1T12:00:00Z   ",
                                      "-026-03-01T12:00:00Z",
                                      "2026-03-01T12:00:00Z\n"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

}  // namespace
}  // namespace gflow
