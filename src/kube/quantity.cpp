// SPDX-License-Identifier: Apache-2.0
#include "kube/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"

namespace gflow::kube {
namespace {

using Wide = __int128;

constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
constexpr Wide kTooMuch = Wide{1} << 100;

/// mantissa * 2^twos * 10^tens
struct Scaled {
  Wide mantissa = 0;
  int twos = 0;
  int tens = 0;
};

/// Digits with at most one point between or beside them; what follows them stays in `text`.
std::optional<Scaled> read_digits(std::string_view& text) {
  Scaled read;
  bool any = false;
  bool behind_point = false;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '.' && !behind_point) {
      behind_point = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      if (read.mantissa < kTooMuch) {
        read.mantissa = read.mantissa * 10 + (c - '0');
        if (behind_point) --read.tens;
      } else if (!behind_point) {
        ++read.tens;
      }
    } else {
      break;
    }
    text.remove_prefix(1);
  }
  return any ? std::optional(read) : std::nullopt;
}

bool read_exponent(std::string_view text, Scaled& into) {
  text.remove_prefix(1);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const auto number = parse_number(text);
  if (!number) return false;
  const int most = static_cast<int>(std::min<std::uint64_t>(*number, 60));
  into.tens += is_negative ? -most : most;
  return true;
}

bool read_suffix(std::string_view text, Scaled& into) {
  constexpr std::string_view kBinary = "KMGTPE";
  constexpr std::string_view kDecimal = "kMGTPE";
  if (text.empty()) return true;
  if (text.size() == 2 && text[1] == 'i') {
    const std::size_t at = kBinary.find(text[0]);
    if (at == std::string_view::npos) return false;
    into.twos = 10 * (static_cast<int>(at) + 1);
    return true;
  }
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) return read_exponent(text, into);
  if (text.size() != 1) return false;
  if (text == "n" || text == "u" || text == "m") {
    into.tens -= text == "n" ? 9 : text == "u" ? 6 : 3;
    return true;
  }
  const std::size_t at = kDecimal.find(text[0]);
  if (at == std::string_view::npos) return false;
  into.tens += 3 * (static_cast<int>(at) + 1);
  return true;
}

std::int64_t rounded_up(Scaled value) {
  Wide amount = value.mantissa;
  for (; value.twos > 0 && amount < kTooMuch; --value.twos) amount *= 2;
  for (; value.tens > 0 && amount < kTooMuch; --value.tens) amount *= 10;
  bool rest = false;
  for (; value.tens < 0 && amount > 0; ++value.tens) {
    rest |= amount % 10 != 0;
    amount /= 10;
  }
  return static_cast<std::int64_t>(std::min(amount + (rest ? 1 : 0), kMost));
}

Result<std::int64_t> read(std::string_view written, int tens) {
  std::string_view text = trim(written);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  auto value = read_digits(text);
  if (!value || !read_suffix(text, *value)) {
    return fail(Code::Usage,
                fmt::format("'{}' is no quantity: write 2, 500m or 4Gi", printable(written)));
  }
  value->tens += tens;
  return is_negative ? 0 : rounded_up(*value);
}

}  // namespace

Result<std::int64_t> read_milli(std::string_view text) { return read(text, 3); }
Result<std::int64_t> read_ten_thousandths(std::string_view text) { return read(text, 4); }
Result<std::int64_t> read_whole(std::string_view text) { return read(text, 0); }

}  // namespace gflow::kube
