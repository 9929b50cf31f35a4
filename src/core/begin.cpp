// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "base/translate.h"
#include "core/requests.h"

namespace gflow {
namespace {

/// "2026-03-01", "2026-03-01T12:00", "2026-03-01 12:00:30" made into a full time with offset 0.
std::string full_date(std::string_view text) {
  constexpr std::size_t kDate = 10;
  std::string full(text);
  if (full.size() == kDate) full += "T00:00";
  if (full.size() == kDate + 6) full += ":00";
  return full + "Z";
}

bool looks_like_date(std::string_view text) {
  return text.size() >= 10 && text[4] == '-' && text[7] == '-';
}

/// "22:00" or "22:00:30" as the next such moment after now.
std::optional<WallTime> next_clock(std::string_view text, WallTime now, const Zone& zone) {
  if (text.size() != 5 && text.size() != 8) return std::nullopt;
  const auto today = std::chrono::floor<std::chrono::days>(now + zone.offset(now));
  const std::string full =
      rfc3339(today).substr(0, 11) + std::string(text) + (text.size() == 5 ? ":00Z" : "Z");
  const auto local = parse_rfc3339(full);
  if (!local) return std::nullopt;
  const WallTime at = zone.instant(*local);
  return at > now ? at : zone.instant(*local + std::chrono::days(1));
}

/// "now+2h", "+30", "2h".
std::optional<WallTime> after_now(std::string_view text, WallTime now) {
  const auto wait = parse_duration(text);
  return wait ? std::optional<WallTime>(now + *wait) : std::nullopt;
}

std::optional<WallTime> read_begin(std::string_view text, WallTime now, const Zone& zone) {
  const std::string lower = to_lower(text);
  if (lower == "now") return now;
  if (lower.starts_with("now+")) return after_now(text.substr(4), now);
  if (lower.starts_with("+")) return after_now(text.substr(1), now);
  // "2h", as --since has it; without a letter it would be a clock or a date.
  if (!text.empty() && std::string_view("smhd").contains(lower.back())) {
    return after_now(text, now);
  }
  if (!looks_like_date(text)) return next_clock(text, now, zone);
  if (const auto exact = parse_rfc3339(text)) return *exact;
  const auto local = parse_rfc3339(full_date(text));
  return local ? std::optional<WallTime>(zone.instant(*local)) : std::nullopt;
}

}  // namespace

Result<WallTime> parse_begin(std::string_view text, WallTime now, const Zone& zone) {
  const auto at = read_begin(trim(text), now, zone);
  if (!at) {
    return fail(Code::Usage,
                tr_format("'{}' is not a begin time; write now+2h, 22:00, 2026-03-01 or "
                          "2026-03-01T12:00",
                          printable(text)));
  }
  return *at;
}

}  // namespace gflow
