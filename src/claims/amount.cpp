// SPDX-License-Identifier: Apache-2.0
#include "claims/amount.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/text.h"

namespace gflow::claims {
namespace {

using Nanos = __int128;

constexpr Nanos kOne = 1'000'000'000;
constexpr Nanos kMostNanos = Nanos{std::numeric_limits<std::int64_t>::max()} * kOne;
constexpr Nanos kCeiling = Nanos{1} << 100;  // more than any amount is, and room to go on
constexpr std::string_view kBinaryPrefixes = "KMGTPE";

/// mantissa * 2^twos * 10^tens
struct Written {
  Nanos mantissa = 0;
  int twos = 0;
  int tens = 0;
  bool has_rest = false;  ///< digits that were left out
};

std::optional<Written> read_mantissa(std::string_view& text) {
  Written read;
  bool any = false;
  bool behind_point = false;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (c == '.' && !behind_point) {
      behind_point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (read.mantissa < kCeiling) {
      read.mantissa = read.mantissa * 10 + (c - '0');
      if (behind_point) --read.tens;
    } else {
      read.has_rest |= c != '0';
      if (!behind_point) ++read.tens;
    }
  }
  return any ? std::optional(read) : std::nullopt;
}

bool read_power(std::string_view text, Written& into) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const auto number = parse_number(text);
  if (!number) return false;
  const int most = static_cast<int>(std::min<std::uint64_t>(*number, 80));
  into.tens += is_negative ? -most : most;
  return true;
}

bool read_unit(std::string_view text, Written& into) {
  constexpr std::string_view kDecimal = "num kMGTPE";
  if (text.empty()) return true;
  if (text.size() == 2 && text[1] == 'i') {
    const std::size_t at = kBinaryPrefixes.find(text[0]);
    if (at == std::string_view::npos) return false;
    into.twos = 10 * (static_cast<int>(at) + 1);
    return true;
  }
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) {
    return read_power(text.substr(1), into);
  }
  const std::size_t at = text == " " ? std::string_view::npos : kDecimal.find(text);
  if (text.size() != 1 || at == std::string_view::npos) return false;
  into.tens += 3 * (static_cast<int>(at) - 3);
  return true;
}

Nanos rounded_away(Written value) {
  Nanos amount = value.mantissa;
  value.tens += 9;
  for (; value.twos > 0 && amount < kCeiling; --value.twos) amount *= 2;
  for (; value.tens > 0 && amount < kCeiling; --value.tens) amount *= 10;
  bool has_rest = value.has_rest;
  for (; value.tens < 0 && amount > 0; ++value.tens) {
    has_rest |= amount % 10 != 0;
    amount /= 10;
  }
  return std::min(amount + (has_rest ? 1 : 0), kMostNanos);
}

Amount bounded(Nanos nanos) { return {std::clamp(nanos, -kCeiling, kCeiling)}; }

}  // namespace

Amount whole(std::int64_t number) { return {Nanos{number} * kOne}; }

Result<Amount> read_amount(std::string_view written) {
  std::string_view text = written;
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  auto value = read_mantissa(text);
  if (!value || !read_unit(text, *value)) {
    return fail(Code::Usage, fmt::format("'{}' is no quantity", printable(written)));
  }
  const Nanos nanos = rounded_away(*value);
  return Amount{is_negative ? -nanos : nanos};
}

std::string to_text(const Amount& amount) {
  const bool is_negative = amount.nanos < 0;
  Nanos left = is_negative ? -amount.nanos : amount.nanos;
  std::string_view unit;
  if (left % kOne == 0) {
    left /= kOne;
    std::size_t prefix = 0;
    while (prefix < kBinaryPrefixes.size() && left != 0 && left % 1024 == 0) {
      left /= 1024;
      ++prefix;
    }
    const std::string suffix = prefix == 0 ? "" : std::string{kBinaryPrefixes.at(prefix - 1)} + "i";
    return fmt::format("{}{}{}", is_negative ? "-" : "", left, suffix);
  }
  constexpr std::array<std::string_view, 3> kParts = {"n", "u", "m"};
  std::size_t part = 0;
  while (part + 1 < kParts.size() && left % 1000 == 0) {
    left /= 1000;
    ++part;
  }
  unit = kParts.at(part);
  return fmt::format("{}{}{}", is_negative ? "-" : "", left, unit);
}

Amount sum(const Amount& a, const Amount& b) { return bounded(a.nanos + b.nanos); }
Amount difference(const Amount& a, const Amount& b) { return bounded(a.nanos - b.nanos); }

std::int64_t rounded(const Amount& amount) {
  Nanos units = amount.nanos / kOne;
  if (amount.nanos % kOne != 0) units += amount.nanos < 0 ? -1 : 1;
  constexpr Nanos kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(units, -kMost, kMost));
}

bool is_whole(const Amount& amount) { return amount.nanos % kOne == 0; }

}  // namespace gflow::claims
