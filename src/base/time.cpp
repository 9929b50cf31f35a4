// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/translate.h"

namespace gflow {
namespace {

using std::chrono::seconds;
constexpr std::int64_t kMaxYears = 10;
constexpr std::int64_t kMaxSeconds = kMaxYears * 365 * 24 * 3600;
constexpr std::int64_t kTooLong =
    kMaxSeconds + 1;  // what is longer counts as this: sums stay small

/// Digits, kTooLong at most.
std::optional<std::int64_t> bounded_number(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  constexpr auto kMost = static_cast<std::uint64_t>(kTooLong);
  return static_cast<std::int64_t>(std::min(parse_number(text).value_or(kMost), kMost));
}

/// "M", "M:S", "H:M:S" in seconds.
std::optional<std::int64_t> colon_seconds(std::string_view text) {
  std::vector<std::int64_t> parts;
  for (const std::string_view piece : split(text, ':')) {
    const auto number = bounded_number(piece);
    if (!number) return std::nullopt;
    parts.push_back(*number);
  }
  if (parts.size() == 1) return parts[0] * 60;
  if (parts.size() == 2) return parts[0] * 60 + parts[1];
  if (parts.size() == 3) return parts[0] * 3600 + parts[1] * 60 + parts[2];
  return std::nullopt;
}

/// "1h30m" and the like in seconds.
std::optional<std::int64_t> unit_seconds(std::string_view text) {
  std::int64_t total = 0;
  while (!text.empty()) {
    const std::size_t digits = text.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
    const auto number = bounded_number(text.substr(0, digits));
    constexpr std::string_view kLetters = "smhd";
    constexpr std::array<std::int64_t, 4> kSizes = {1, 60, 3600, 86400};
    const std::size_t unit = kLetters.find(text[digits]);
    if (!number || unit == std::string_view::npos) return std::nullopt;
    total = std::min(total + *number * kSizes.at(unit), kTooLong);
    text.remove_prefix(digits + 1);
  }
  return total;
}

std::optional<std::int64_t> duration_seconds(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text.find_first_of("smhdSMHD") != std::string_view::npos) {
    return unit_seconds(to_lower(text));
  }
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return colon_seconds(text);
  const auto days = bounded_number(text.substr(0, dash));
  const std::string_view rest = text.substr(dash + 1);
  // As Slurm: "D-H", "D-H:M", "D-H:M:S".
  const auto colons = std::count(rest.begin(), rest.end(), ':');
  if (!days || colons > 2) return std::nullopt;
  const std::string padded = std::string(rest) + (colons == 0 ? ":0:0" : colons == 1 ? ":0" : "");
  const auto clock = colon_seconds(padded);
  if (!clock) return std::nullopt;
  return *days * 86400 + *clock;
}

}  // namespace

Result<seconds> parse_duration(std::string_view text) {
  const auto total = duration_seconds(trim(text));
  if (!total || *total <= 0) {
    return fail(Code::Usage,
                tr_format("'{}' is not a duration; write 30 (minutes), 4:00:00, 1-12:00:00, "
                          "90s or 1h30m",
                          printable(text)));
  }
  if (*total > kMaxSeconds) {
    return fail(Code::Usage,
                tr_format("'{}' is longer than {} years, the longest duration there is",
                          printable(text),
                          kMaxYears));
  }
  return seconds(*total);
}

std::string clock_text(seconds duration) {
  const auto total = std::max<seconds::rep>(duration.count(), 0);
  return fmt::format("{:02}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

std::string duration_text(seconds duration) {
  std::int64_t rest = duration.count();
  if (rest <= 0) return "0s";
  struct Unit {
    std::int64_t size;
    char letter;
  };
  constexpr std::array<Unit, 4> kDays = {{{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}}};
  std::string text;
  for (const Unit& unit : kDays) {
    if (rest < unit.size) continue;
    text += fmt::format("{}{}", rest / unit.size, unit.letter);
    rest %= unit.size;
  }
  return text;
}

std::string rfc3339(WallTime time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                     static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()),
                     clock.hours().count(),
                     clock.minutes().count(),
                     clock.seconds().count(),
                     clock.subseconds().count());
}

namespace {

std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return std::nullopt;
  const auto value = parse_number(text.substr(at, count));
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

/// "Z", "+08:00" in minutes.
std::optional<int> offset_minutes(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  if (text.size() != 6 || text[3] != ':' || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const auto hour = digits_at(text, 1, 2);
  const auto minute = digits_at(text, 4, 2);
  if (!hour || !minute || *hour > 23 || *minute > 59) return std::nullopt;
  return (*hour * 60 + *minute) * (text[0] == '-' ? -1 : 1);
}

std::optional<WallTime> read_rfc3339(std::string_view text) {
  using namespace std::chrono;
  if (text.size() < 20 || std::string_view("Tt ").find(text[10]) == std::string_view::npos) {
    return std::nullopt;
  }
  if (text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return std::nullopt;
  std::array<int, 6> field{};
  constexpr std::array<std::size_t, 6> kAt = {0, 5, 8, 11, 14, 17};
  for (std::size_t i = 0; i < kAt.size(); ++i) {
    const auto value = digits_at(text, kAt.at(i), i == 0 ? 4 : 2);
    if (!value) return std::nullopt;
    field.at(i) = *value;
  }
  std::string_view rest = text.substr(19);
  int milli = 0;
  if (rest[0] == '.') {
    const std::size_t end = rest.find_first_not_of("0123456789", 1);
    if (end == std::string_view::npos || end == 1) return std::nullopt;
    const std::string fraction = (std::string(rest.substr(1, end - 1)) + "00").substr(0, 3);
    milli = static_cast<int>(*parse_number(fraction));
    rest.remove_prefix(end);
  }
  const auto offset = offset_minutes(rest);
  const year_month_day date{
      year(field[0]), month(static_cast<unsigned>(field[1])), day(static_cast<unsigned>(field[2]))};
  if (!offset || !date.ok() || field[3] > 23 || field[4] > 59 || field[5] > 60) return std::nullopt;
  return WallTime(sys_days(date).time_since_epoch()) + hours(field[3]) +
         minutes(field[4] - *offset) + seconds(field[5]) + milliseconds(milli);
}

}  // namespace

Result<WallTime> parse_rfc3339(std::string_view text) {
  const auto time = read_rfc3339(text);
  if (!time) {
    return fail(Code::Usage,
                fmt::format("'{}' is not a time; write 2026-03-01T12:00:00Z", printable(text)));
  }
  return *time;
}

}  // namespace gflow
