// SPDX-License-Identifier: Apache-2.0
#include "command/times.h"

#include <fmt/format.h>

#include "os/clock.h"

namespace gflow::cli {

namespace {

struct Calendar {
  int year;
  unsigned month;
  unsigned day;
  long hour;
  long minute;
  long second;
};

Calendar calendar(WallTime time, std::chrono::seconds utc_offset) {
  using namespace std::chrono;
  const auto local = floor<seconds>(time) + utc_offset;
  const auto day = floor<days>(local);
  const year_month_day date(day);
  const hh_mm_ss clock(local - day);
  return {static_cast<int>(date.year()),
          static_cast<unsigned>(date.month()),
          static_cast<unsigned>(date.day()),
          clock.hours().count(),
          clock.minutes().count(),
          clock.seconds().count()};
}

}  // namespace

std::string local_text(WallTime time, std::chrono::seconds utc_offset) {
  const Calendar c = calendar(time, utc_offset);
  return fmt::format(
      "{:04}-{:02}-{:02} {:02}:{:02}:{:02}", c.year, c.month, c.day, c.hour, c.minute, c.second);
}

std::string local_text(WallTime time) { return local_text(time, os::utc_offset(time)); }

std::string local_text(const std::optional<WallTime>& time) {
  return time ? local_text(*time) : "-";
}

std::string moment_text(WallTime time, WallTime now, const Zone& zone) {
  const Calendar at = calendar(time, zone.offset(time));
  const Calendar today = calendar(now, zone.offset(now));
  const bool same_day = at.year == today.year && at.month == today.month && at.day == today.day;
  std::string text = same_day ? "" : fmt::format("{:04}-{:02}-{:02} ", at.year, at.month, at.day);
  text += fmt::format("{:02}:{:02}", at.hour, at.minute);
  const auto away = std::chrono::floor<std::chrono::seconds>(time - now);
  if (away.count() > 0) return fmt::format("{} (in {})", text, duration_text(away));
  if (away.count() < 0) return fmt::format("{} ({} ago)", text, duration_text(-away));
  return text + " (now)";
}

}  // namespace gflow::cli
