// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace gflow {
namespace {

struct Unit {
  char letter;
  int shift;
};
constexpr std::array<Unit, 4> kUnits = {{{'T', 40}, {'G', 30}, {'M', 20}, {'K', 10}}};

Error bad_memory(std::string_view text) {
  return {Code::Usage,
          fmt::format("'{}' is not an amount of memory; write 512M, 20G or 1.5T "
                      "(a bare number is MiB)",
                      printable(text))};
}

/// The shift of a unit suffix ("", "g", "GB", "GiB"), or -1.
int unit_shift(std::string_view suffix) {
  if (suffix.empty()) return 20;
  for (const Unit& unit : kUnits) {
    if (ascii_upper(suffix[0]) != unit.letter) continue;
    const std::string rest = to_lower(suffix.substr(1));
    return rest.empty() || rest == "b" || rest == "i" || rest == "ib" ? unit.shift : -1;
  }
  return -1;
}

/// Rounded.
std::int64_t hundredths_of(Memory memory, const Unit& unit) {
  const auto size = static_cast<double>(std::int64_t{1} << unit.shift);
  return std::llround(static_cast<double>(memory.bytes) / size * 100);
}

std::string text_in(const Unit& unit, std::int64_t hundredths) {
  std::string digits = fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits + unit.letter;
}

}  // namespace

Result<Memory> parse_memory(std::string_view text) {
  const std::string_view body = trim(text);
  double number = 0;
  const auto [end, error] =
      std::from_chars(body.data(), body.data() + body.size(), number, std::chars_format::fixed);
  if (error != std::errc{}) return std::unexpected(bad_memory(text));
  const int shift = unit_shift(trim(body.substr(static_cast<std::size_t>(end - body.data()))));
  if (shift < 0) return std::unexpected(bad_memory(text));
  const double bytes = number * static_cast<double>(std::int64_t{1} << shift);
  constexpr double kMax = 0x1p62;
  if (!(bytes >= 1.0) || bytes > kMax) return std::unexpected(bad_memory(text));
  return Memory{static_cast<std::int64_t>(bytes)};
}

std::string memory_text(Memory memory) {
  for (const Unit& unit : kUnits) {
    // 1023.999M is 1G.
    if (const std::int64_t hundredths = hundredths_of(memory, unit); hundredths >= 100) {
      return text_in(unit, hundredths);
    }
  }
  return fmt::format("{}B", memory.bytes);
}

std::string memory_text(Memory memory, Memory beside) {
  std::string usual = memory_text(memory);
  if (memory == beside || usual != memory_text(beside)) return usual;
  for (const Unit& unit : kUnits) {
    const std::int64_t hundredths = hundredths_of(memory, unit);
    if (hundredths != hundredths_of(beside, unit)) return text_in(unit, hundredths);
  }
  return fmt::format("{}B", memory.bytes);
}

}  // namespace gflow
