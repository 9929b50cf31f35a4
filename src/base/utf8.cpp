// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <algorithm>
#include <array>

namespace gflow::utf8 {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// East Asian Wide and Fullwidth (EastAsianWidth.txt of Unicode 14), unassigned gaps filled.
// clang-format off
constexpr std::array<Range, 82> kWide = {{
    {0x1100, 0x115F}, {0x231A, 0x231B}, {0x2329, 0x232A}, {0x23E9, 0x23EC}, {0x23F0, 0x23F0},
    {0x23F3, 0x23F3}, {0x25FD, 0x25FE}, {0x2614, 0x2615}, {0x2648, 0x2653}, {0x267F, 0x267F},
    {0x2693, 0x2693}, {0x26A1, 0x26A1}, {0x26AA, 0x26AB}, {0x26BD, 0x26BE}, {0x26C4, 0x26C5},
    {0x26CE, 0x26CE}, {0x26D4, 0x26D4}, {0x26EA, 0x26EA}, {0x26F2, 0x26F3}, {0x26F5, 0x26F5},
    {0x26FA, 0x26FA}, {0x26FD, 0x26FD}, {0x2705, 0x2705}, {0x270A, 0x270B}, {0x2728, 0x2728},
    {0x274C, 0x274C}, {0x274E, 0x274E}, {0x2753, 0x2755}, {0x2757, 0x2757}, {0x2795, 0x2797},
    {0x27B0, 0x27B0}, {0x27BF, 0x27BF}, {0x2B1B, 0x2B1C}, {0x2B50, 0x2B50}, {0x2B55, 0x2B55},
    {0x2E80, 0x303E}, {0x3041, 0x3247}, {0x3250, 0x4DBF}, {0x4E00, 0xA4CF}, {0xA960, 0xA97F},
    {0xAC00, 0xD7A3}, {0xF900, 0xFAFF}, {0xFE10, 0xFE19}, {0xFE30, 0xFE6F}, {0xFF01, 0xFF60},
    {0xFFE0, 0xFFE6}, {0x16FE0, 0x18D08}, {0x1AFF0, 0x1B2FB}, {0x1F004, 0x1F004},
    {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F320},
    {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C}, {0x1F37E, 0x1F393}, {0x1F3A0, 0x1F3CA},
    {0x1F3CF, 0x1F3D3}, {0x1F3E0, 0x1F3F0}, {0x1F3F4, 0x1F3F4}, {0x1F3F8, 0x1F43E},
    {0x1F440, 0x1F440}, {0x1F442, 0x1F4FC}, {0x1F4FF, 0x1F53D}, {0x1F54B, 0x1F54E},
    {0x1F550, 0x1F567}, {0x1F57A, 0x1F57A}, {0x1F595, 0x1F596}, {0x1F5A4, 0x1F5A4},
    {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5}, {0x1F6CC, 0x1F6CC}, {0x1F6D0, 0x1F6D2},
    {0x1F6D5, 0x1F6DF}, {0x1F6EB, 0x1F6EC}, {0x1F6F4, 0x1F6FC}, {0x1F7E0, 0x1F7F0},
    {0x1F90C, 0x1F93A}, {0x1F93C, 0x1F945}, {0x1F947, 0x1F9FF}, {0x1FA70, 0x1FAFF},
    {0x20000, 0x3FFFD},
}};
// clang-format on
constexpr std::array<Range, 5> kZero = {
    {{0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}}};

// Marks (categories Mn and Me) of scripts in which they are common, and what selects a form.
constexpr std::array<Range, 14> kJoins = {{{0x0300, 0x036F},
                                           {0x0483, 0x0489},
                                           {0x0591, 0x05BD},
                                           {0x0610, 0x061A},
                                           {0x064B, 0x065F},
                                           {0x1AB0, 0x1AFF},
                                           {0x1DC0, 0x1DFF},
                                           {0x200C, 0x200D},
                                           {0x20D0, 0x20FF},
                                           {0x302A, 0x302D},
                                           {0x3099, 0x309A},
                                           {0xFE00, 0xFE0F},
                                           {0xFE20, 0xFE2F},
                                           {0xE0100, 0xE01EF}}};
// Controls, format characters (Cf), fillers, and blanks (Zs) but for the one everybody types.
constexpr std::array<Range, 21> kUnseen = {
    {{0x0000, 0x001F},  {0x007F, 0x00A0}, {0x00AD, 0x00AD}, {0x0600, 0x0605}, {0x061C, 0x061C},
     {0x115F, 0x1160},  {0x1680, 0x1680}, {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x2000, 0x200B},
     {0x200E, 0x200F},  {0x2028, 0x202F}, {0x205F, 0x206F}, {0x2800, 0x2800}, {0x3000, 0x3000},
     {0x3164, 0x3164},  {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x1D173, 0x1D17A},
     {0xE0000, 0xE00FF}}};

template <std::size_t N>
bool contains(const std::array<Range, N>& ranges, char32_t point) {
  return std::ranges::any_of(ranges,
                             [point](Range r) { return point >= r.first && point <= r.last; });
}

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

Char next(std::string_view text) {
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t point = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned byte = byte_at(text, i);
    if ((byte & 0xC0U) != 0x80) return {};
    point = (point << 6) | (byte & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < kLeast.at(length) || point > 0x10FFFF || surrogate) return {};
  return {point, length, true};
}

std::size_t length(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); text.remove_prefix(next(text).length)) ++count;
  return count;
}

std::size_t columns(char32_t point) {
  if (point < kZero.front().first) return 1;  // almost everything
  if (contains(kZero, point)) return 0;
  return contains(kWide, point) ? 2 : 1;
}

bool joins(char32_t point) { return contains(kJoins, point); }
bool is_control(char32_t point) {
  if (point < 0x20 || (point >= 0x7f && point < 0xa0)) return true;
  if (point < 0x61c) return false;  // almost everything
  const bool is_mark = point == 0x61c || point == 0x200e || point == 0x200f;
  const bool line_or_direction = point >= 0x2028 && point <= 0x202e;
  const bool isolate = point >= 0x2066 && point <= 0x2069;
  return is_mark || line_or_direction || isolate;
}
bool is_unseen(char32_t point) { return contains(kUnseen, point); }

}  // namespace gflow::utf8
