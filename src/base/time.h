// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow {

/// Calendar time, UTC, millisecond precision. Shown to people; never used for order or durations.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// The clock of one boot (CLOCK_MONOTONIC): what durations and limits are counted on.
struct MonotonicClock {
  using rep = std::chrono::milliseconds::rep;
  using period = std::chrono::milliseconds::period;
  using duration = std::chrono::milliseconds;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
};
using MonoTime = MonotonicClock::time_point;

/// Both readings of one instant, passed in wherever time matters.
struct Now {
  WallTime wall;
  MonoTime mono;
};

/// Reads a time limit: "30" minutes, "10:30" M:S, "4:00:00" H:M:S, "1-12:00:00" D-H:M:S,
/// "90s" "30m" "2h" "1h30m" "3d". Errors: Code::Usage naming the text; zero and over 10 years too.
[[nodiscard]] Result<std::chrono::seconds> parse_duration(std::string_view text);

/// "HH:MM:SS", hours may exceed 99: the TIME column.
[[nodiscard]] std::string clock_text(std::chrono::seconds duration);
/// "45s", "1h30m", "2d4h": for sentences.
[[nodiscard]] std::string duration_text(std::chrono::seconds duration);
/// "2026-03-01T12:00:00.250Z" (RFC 3339, UTC).
[[nodiscard]] std::string rfc3339(WallTime time);
/// Reads what rfc3339() writes, with any offset. Errors: Code::Usage.
[[nodiscard]] Result<WallTime> parse_rfc3339(std::string_view text);

}  // namespace gflow
