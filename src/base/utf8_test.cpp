// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace gflow::utf8 {
namespace {

TEST(Utf8, TakesOneCharacter) {
  struct Row {
    std::string_view text;
    char32_t point;
    std::size_t length;
    bool valid;
  };
  const std::array rows = {Row{"a", U'a', 1, true},
                           Row{"\x7f", 0x7f, 1, true},
                           Row{"\xc2\x80", 0x80, 2, true},
                           Row{"\xdf\xbf", 0x7ff, 2, true},
                           Row{"\xe0\xa0\x80", 0x800, 3, true},
                           Row{"\xef\xbf\xbf", 0xffff, 3, true},
                           Row{"\xf0\x90\x80\x80", 0x10000, 4, true},
                           Row{"\xf4\x8f\xbf\xbf", 0x10ffff, 4, true},
                           Row{"\xe8\xae\xad!", 0x8bad, 3, true},
                           // Everything else is one byte that is not valid.
                           Row{"\x80", 0, 1, false},
                           Row{"\xc1\xbf", 0, 1, false},
                           Row{"\xc2", 0, 1, false},
                           Row{"\xc2 ", 0, 1, false},
                           Row{"\xe0\x9f\xbf", 0, 1, false},
                           Row{"\xed\xa0\x80", 0, 1, false},
                           Row{"\xed\xbf\xbf", 0, 1, false},
                           Row{"\xf0\x8f\xbf\xbf", 0, 1, false},
                           Row{"\xf4\x90\x80\x80", 0, 1, false},
                           Row{"\xf5\x80\x80\x80", 0, 1, false},
                           Row{"\xf0\x9f\x9a", 0, 1, false},
                           Row{"\xff", 0, 1, false}};
  for (const Row& row : rows) {
    const Char c = next(row.text);
    EXPECT_EQ(c.point, row.point) << row.text;
    EXPECT_EQ(c.length, row.length) << row.text;
    EXPECT_EQ(c.valid, row.valid) << row.text;
  }
}

TEST(Utf8, KnowsWideAndCombiningCharacters) {
  struct Row {
    char32_t point;
    std::size_t columns;
  };
  const std::array rows = {Row{U'a', 1},
                           Row{U'é', 1},
                           Row{0x2500, 1},   // box drawing
                           Row{0x2713, 1},   // check mark
                           Row{0x4E2D, 2},   // 中
                           Row{0x3042, 2},   // あ
                           Row{0xD55C, 2},   // 한
                           Row{0xFF08, 2},   // （
                           Row{0x2705, 2},   // white heavy check mark
                           Row{0x23F0, 2},   // alarm clock
                           Row{0x1F680, 2},  // rocket
                           Row{0x20000, 2},
                           Row{0x0301, 0},
                           Row{0x200B, 0},
                           Row{0xFE0F, 0}};
  for (const Row& row : rows) {
    EXPECT_EQ(columns(row.point), row.columns) << static_cast<std::uint32_t>(row.point);
  }
}

}  // namespace
}  // namespace gflow::utf8
