// SPDX-License-Identifier: Apache-2.0
#include "base/zone.h"

#include <gtest/gtest.h>

#include <array>

namespace gflow {
namespace {

using namespace std::chrono_literals;

WallTime utc(std::string_view text) { return parse_rfc3339(text).value(); }

/// As in Berlin in 2026: forward on 29 March, back on 25 October, both at 01:00 UTC.
std::chrono::seconds berlin(WallTime at) {
  const bool summer = at >= utc("2026-03-29T01:00:00Z") && at < utc("2026-10-25T01:00:00Z");
  return summer ? 2h : 1h;
}
/// As in New York in 2026.
std::chrono::seconds new_york(WallTime at) {
  const bool summer = at >= utc("2026-03-08T07:00:00Z") && at < utc("2026-11-01T06:00:00Z");
  return summer ? -4h : -5h;
}

TEST(Zone, TakesTheOffsetOfTheDateThatIsMeant) {
  struct Row {
    Zone zone;
    std::string_view local;
    std::string_view instant;
  };
  const std::array rows = {Row{Zone(8h), "2026-03-29T02:30:00Z", "2026-03-28T18:30:00.000Z"},
                           Row{berlin, "2026-03-01T12:00:00Z", "2026-03-01T11:00:00.000Z"},
                           Row{berlin, "2026-07-01T12:00:00Z", "2026-07-01T10:00:00.000Z"},
                           // The last moment before a change and the first behind it.
                           Row{berlin, "2026-03-29T01:59:59Z", "2026-03-29T00:59:59.000Z"},
                           Row{berlin, "2026-03-29T03:00:00Z", "2026-03-29T01:00:00.000Z"},
                           // Not on any clock: half past two of the old time is half past three.
                           Row{berlin, "2026-03-29T02:30:00Z", "2026-03-29T01:30:00.000Z"},
                           // Twice on every clock: the first.
                           Row{berlin, "2026-10-25T02:30:00Z", "2026-10-25T00:30:00.000Z"},
                           Row{berlin, "2026-10-25T01:59:59Z", "2026-10-24T23:59:59.000Z"},
                           Row{berlin, "2026-10-25T03:00:00Z", "2026-10-25T02:00:00.000Z"},
                           Row{new_york, "2026-03-08T02:30:00Z", "2026-03-08T07:30:00.000Z"},
                           Row{new_york, "2026-11-01T01:30:00Z", "2026-11-01T05:30:00.000Z"},
                           Row{new_york, "2026-11-01T02:00:00Z", "2026-11-01T07:00:00.000Z"}};
  for (const Row& row : rows) {
    EXPECT_EQ(rfc3339(row.zone.instant(utc(row.local))), row.instant) << row.local;
  }
}

}  // namespace
}  // namespace gflow
