// SPDX-License-Identifier: Apache-2.0
#include "command/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/translate.h"
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

std::string day_and_time(WallTime time, WallTime now, const Zone& zone) {
  const Calendar at = calendar(time, zone.offset(time));
  const Calendar today = calendar(now, zone.offset(now));
  const bool same_day = at.year == today.year && at.month == today.month && at.day == today.day;
  const std::string day =
      same_day ? "" : fmt::format("{:04}-{:02}-{:02} ", at.year, at.month, at.day);
  return day + fmt::format("{:02}:{:02}", at.hour, at.minute);
}

std::string moment_text(WallTime time, WallTime now, const Zone& zone) {
  const std::string text = day_and_time(time, now, zone);
  const auto away = std::chrono::floor<std::chrono::seconds>(time - now);
  if (away.count() > 0) return tr_format("{} (in {})", text, duration_text(away));
  if (away.count() < 0) return tr_format("{} ({} ago)", text, duration_text(-away));
  return tr_format("{} (now)", text);
}

std::string brief_moment(WallTime time, WallTime now, const Zone& zone) {
  using std::chrono::days;
  using std::chrono::floor;
  constexpr std::array<std::string_view, 7> kDays = {tr_later("Sun"),
                                                     tr_later("Mon"),
                                                     tr_later("Tue"),
                                                     tr_later("Wed"),
                                                     tr_later("Thu"),
                                                     tr_later("Fri"),
                                                     tr_later("Sat")};
  const Calendar at = calendar(time, zone.offset(time));
  const auto day = floor<days>(time + zone.offset(time));
  const auto away = day - floor<days>(now + zone.offset(now));
  if (std::chrono::abs(away) > days(6)) {
    return fmt::format("{:04}-{:02}-{:02}", at.year, at.month, at.day);
  }
  const std::string clock = fmt::format("{:02}:{:02}", at.hour, at.minute);
  if (away.count() == 0) return clock;
  return fmt::format("{} {}", tr(kDays.at(std::chrono::weekday(day).c_encoding())), clock);
}

std::string brief_duration(std::chrono::seconds duration) {
  constexpr std::array<std::int64_t, 4> kUnits = {86'400, 3'600, 60, 1};
  const std::int64_t count = std::max<std::int64_t>(duration.count(), 0);
  for (std::size_t i = 0; i + 1 < kUnits.size(); ++i) {
    // 3h12m5s is 3h12m: what is below the second unit is left out.
    if (count >= kUnits.at(i)) {
      return duration_text(std::chrono::seconds(count - count % kUnits.at(i + 1)));
    }
  }
  return duration_text(std::chrono::seconds(count));
}

}  // namespace gflow::cli
