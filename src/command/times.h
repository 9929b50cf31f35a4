// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "base/zone.h"

namespace gflow::cli {

/// "2026-03-01 12:00:05" at that offset from UTC.
[[nodiscard]] std::string local_text(WallTime time, std::chrono::seconds utc_offset);
/// In the local time zone.
[[nodiscard]] std::string local_text(WallTime time);
[[nodiscard]] std::string local_text(const std::optional<WallTime>& time);  ///< "-" if empty

/// "18:10", with the date before it if that is another day.
[[nodiscard]] std::string day_and_time(WallTime time, WallTime now, const Zone& zone);
/// The same with how far away it is: "18:10 (in 4h5m)".
[[nodiscard]] std::string moment_text(WallTime time, WallTime now, const Zone& zone);

/// For columns: "14:32", on another day of this week "Tue 14:32", else "2027-01-03".
[[nodiscard]] std::string brief_moment(WallTime time, WallTime now, const Zone& zone);
/// For columns: "2d4h", "3h12m", "45s": the two largest units of it.
[[nodiscard]] std::string brief_duration(std::chrono::seconds duration);

}  // namespace gflow::cli
