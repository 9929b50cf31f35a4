// SPDX-License-Identifier: Apache-2.0
#include "core/requests.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace gflow {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

TEST(Priority, IsFrom0To255) {
  EXPECT_EQ(parse_priority("0"), 0);
  EXPECT_EQ(parse_priority("255"), 255);
  EXPECT_EQ(parse_priority(" 10 "), 10);
  for (const std::string_view text : {"", "256", "-1", "1.5", "high", "99999999999999999999"}) {
    EXPECT_FALSE(parse_priority(text)) << text;
  }
  EXPECT_EQ(parse_priority("300").error().message,
            "'300' is not a priority; write a number from 0 to 255, higher starts first");
}

std::vector<JobId> ids(std::initializer_list<std::uint64_t> numbers) {
  std::vector<JobId> list;
  for (const std::uint64_t number : numbers) list.emplace_back(number);
  return list;
}

TEST(JobIds, AreSortedAndUnique) {
  EXPECT_EQ(parse_job_ids("42"), ids({42}));
  EXPECT_EQ(parse_job_ids("5-7,1,3"), ids({1, 3, 5, 6, 7}));
  EXPECT_EQ(parse_job_ids("2,2,1-3"), ids({1, 2, 3}));
  EXPECT_EQ(parse_job_ids(" 3 , 1 - 2 "), ids({1, 2, 3}));
  EXPECT_EQ(parse_job_ids("4611686018427387903"), ids({4611686018427387903}));
  EXPECT_EQ(parse_job_ids("1-100000")->size(), 100'000U);
}

TEST(JobIds, RefuseTheRest) {
  struct Row {
    std::string_view text;
    std::string_view why;
  };
  const std::array rows = {
      Row{"", "'' is not a job id; write ids as 42 or 1,3,5-7"},
      Row{"0", "'0' is not a job id"},
      Row{"1,", "'' is not a job id"},
      Row{"1,,2", "'' is not a job id"},
      Row{"-1", "'-1' is not a job id"},
      Row{"1-", "'1-' is not a job id"},
      Row{"1-2-3", "'1-2-3' is not a job id"},
      Row{"a\nb", "'a\\nb' is not a job id"},
      Row{"4611686018427387904", "'4611686018427387904' is not a job id"},
      Row{"7-5", "invalid range '7-5': write 5-7"},
      Row{"1-100001", "more than 100000 job ids at once"},
      Row{"1-100000,5", "more than 100000 job ids at once"},
      Row{"1-4611686018427387903", "more than 100000 job ids at once"},
      Row{"4611686018427287903-4611686018427387903", "more than 100000 job ids at once"}};
  for (const Row& row : rows) {
    const auto list = parse_job_ids(row.text);
    ASSERT_FALSE(list) << row.text;
    EXPECT_TRUE(list.error().message.starts_with(row.why)) << list.error().message;
  }
}

TEST(JobReference, IsANumberOrCountsBack) {
  EXPECT_EQ(parse_job_reference("42")->id, JobId(42));
  struct Row {
    std::string_view text;
    std::uint64_t back;
  };
  for (const Row& row : {Row{"@", 0}, Row{"@~0", 0}, Row{"@~1", 1}, Row{" @~12 ", 12}}) {
    const auto reference = parse_job_reference(row.text);
    ASSERT_TRUE(reference) << row.text;
    EXPECT_FALSE(reference->id) << row.text;
    EXPECT_EQ(reference->newest_back, row.back) << row.text;
  }
  for (const std::string_view text : {"", "0", "@~", "@1", "@~-1", "~1", "1,2", "1-3", "@@", "x"}) {
    EXPECT_FALSE(parse_job_reference(text)) << text;
  }
  EXPECT_EQ(parse_job_reference("newest").error().message,
            "'newest' is not a job; write its id, @ for your newest job or @~1 for the one before "
            "it");
}

// 2026-03-01T12:00:00Z, and a place two hours east of it: 14:00 there.
constexpr WallTime kNoon{1772366400s};
const Zone kEast(2h);

TEST(Begin, ReadsTheFormsPeopleType) {
  struct Row {
    std::string_view text;
    std::string_view at;
  };
  const std::array rows = {Row{"now", "2026-03-01T12:00:00.000Z"},
                           Row{"now+2h", "2026-03-01T14:00:00.000Z"},
                           Row{"NOW+90", "2026-03-01T13:30:00.000Z"},
                           Row{"+30", "2026-03-01T12:30:00.000Z"},
                           Row{"+90s", "2026-03-01T12:01:30.000Z"},
                           Row{"2h", "2026-03-01T14:00:00.000Z"},
                           Row{"1D", "2026-03-02T12:00:00.000Z"},
                           Row{"22:00", "2026-03-01T20:00:00.000Z"},
                           Row{"22:00:30", "2026-03-01T20:00:30.000Z"},
                           Row{"14:00", "2026-03-02T12:00:00.000Z"},
                           Row{"13:59", "2026-03-02T11:59:00.000Z"},
                           Row{"00:00", "2026-03-01T22:00:00.000Z"},
                           Row{"2026-03-05", "2026-03-04T22:00:00.000Z"},
                           Row{"2026-03-05T12:00", "2026-03-05T10:00:00.000Z"},
                           Row{"2026-03-05 12:00:01", "2026-03-05T10:00:01.000Z"},
                           Row{"2026-03-05T12:00:00Z", "2026-03-05T12:00:00.000Z"},
                           Row{"2026-03-05T12:00:00+08:00", "2026-03-05T04:00:00.000Z"},
                           Row{" 2020-01-01 ", "2019-12-31T22:00:00.000Z"}};
  for (const Row& row : rows) {
    const auto at = parse_begin(row.text, kNoon, kEast);
    ASSERT_TRUE(at) << row.text;
    EXPECT_EQ(rfc3339(*at), row.at) << row.text;
  }
}

TEST(Begin, TheDayIsTheLocalOne) {
  const WallTime late = kNoon + 11h;  // 01:00 of the next day there
  EXPECT_EQ(rfc3339(*parse_begin("02:00", late, kEast)), "2026-03-02T00:00:00.000Z");
  EXPECT_EQ(rfc3339(*parse_begin("00:30", late, kEast)), "2026-03-02T22:30:00.000Z");
  EXPECT_EQ(rfc3339(*parse_begin("23:30", late, Zone(-2h))), "2026-03-02T01:30:00.000Z");
}

// The clocks go forward by an hour at 2026-03-29T01:00Z.
std::chrono::seconds until_summer(WallTime at) {
  return at < *parse_rfc3339("2026-03-29T01:00:00Z") ? 1h : 2h;
}

TEST(Begin, ADateBehindAChangeOfTheClocksHasItsOwnOffset) {
  EXPECT_EQ(rfc3339(*parse_begin("2026-03-28T12:00", kNoon, Zone(until_summer))),
            "2026-03-28T11:00:00.000Z");
  EXPECT_EQ(rfc3339(*parse_begin("2026-04-01T12:00", kNoon, Zone(until_summer))),
            "2026-04-01T10:00:00.000Z");
  // Eight in the evening before, and "07:00" is the next morning's.
  const WallTime evening = *parse_rfc3339("2026-03-28T19:00:00Z");
  EXPECT_EQ(rfc3339(*parse_begin("07:00", evening, Zone(until_summer))),
            "2026-03-29T05:00:00.000Z");
  EXPECT_EQ(rfc3339(*parse_begin("now+12h", evening, Zone(until_summer))),
            "2026-03-29T07:00:00.000Z");
}

TEST(Begin, RefusesTheRest) {
  for (const std::string_view text : {"",
                                      "tomorrow",
                                      "now+",
                                      "now+0",
                                      "now-1h",
                                      "now +x",
                                      "24:00",
                                      "12:60",
                                      "1:00",
                                      "12:00Z",
                                      "12:00pm",
                                      "2026-02-29",
                                      "2026-3-1",
                                      "2026-03-01T",
                                      "2026-03-01T1",
                                      "2026-03-01x12:00",
                                      "2026-03-01T12:00:00X",
                                      "2026-03-01T12:00+08:00",
                                      "99999-01-01",
                                      "----------",
                                      "::::::::",
                                      "12:00:0\x1b"}) {
    const auto at = parse_begin(text, kNoon, kEast);
    ASSERT_FALSE(at) << text;
    EXPECT_EQ(at.error().code, Code::Usage);
  }
  EXPECT_EQ(parse_begin("later", kNoon, kEast).error().message,
            "'later' is not a begin time; write now+2h, 22:00, 2026-03-01 or 2026-03-01T12:00");
}

}  // namespace
}  // namespace gflow
