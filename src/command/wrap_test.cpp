// SPDX-License-Identifier: Apache-2.0
#include "command/wrap.h"

#include <gtest/gtest.h>

namespace gflow::cli {
namespace {

struct FittedLines {
  const char* name;
  std::size_t columns;
  const char* text;
  const char* fitted;
};

TEST(FitLines, BreaksWhatIsTooWide) {
  const FittedLines cases[] = {
      {"no screen", 0, "one two three\n", "one two three\n"},
      {"what fits stays", 30, "a   b\n\n  c\n", "a   b\n\n  c\n"},
      {"between words, below the first",
       24,
       "   needs one two three four five\n",
       "   needs one two three\n   four five\n"},
      {"behind a number",
       30,
       "   1.  Priority: behind job 26 of root\n",
       "   1.  Priority: behind job 26\n       of root\n"},
      {"at a gap",
       30,
       "  gjob update 4 --gpus 1     as many as are free\n",
       "  gjob update 4 --gpus 1\n      as many as are free\n"},
      {"wide characters",
       24,
       "  一二三四五六七八九十一二三\n",
       "  一二三四五六七八九十一\n  二三\n"},
      {"a word that is too long stays whole",
       24,
       "  at /a/path/that/is/longer/than/it\n",
       "  at\n  /a/path/that/is/longer/than/it\n"},
      {"what paints it takes no columns",
       24,
       "  \x1b[1mone two three four\x1b[0m\n  \x1b[33mone two three four five\x1b[0m\n",
       "  \x1b[1mone two three four\x1b[0m\n  \x1b[33mone two three four\n  five\x1b[0m\n"},
      {"without an end", 22, "one two three four five six", "one two three four\nfive six"},
  };
  for (const FittedLines& one : cases) {
    EXPECT_EQ(fit_lines(one.text, one.columns), one.fitted) << one.name;
  }
}

TEST(Labelled, GoesOnBelowWhereTheTextBegan) {
  struct Case {
    const char* name;
    std::size_t columns;
    const char* label;
    const char* text;
    const char* lines;
  };
  const Case cases[] = {
      {"no screen",
       0,
       "ok  disk  ",
       "one two  three\nfour",
       "ok  disk  one two  three\n          four\n"},
      {"what fits stays", 30, "ok  disk  ", "one two  three", "ok  disk  one two  three\n"},
      {"below the text",
       32,
       "ok  disk  ",
       "one two three four five\nsix",
       "ok  disk  one two three four\n          five\n          six\n"},
      {"no room beside the label",
       26,
       "\x1b[32mok\x1b[0m  disk  ",
       "one two three four five",
       "\x1b[32mok\x1b[0m  disk\n      one two three four\n      five\n"},
      {"wide characters",
       30,
       "磁盘  ",
       "一二三四五六七八九十一二三",
       "磁盘  一二三四五六七八九十一二\n      三\n"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(labelled(one.label, one.text, one.columns), one.lines) << one.name;
  }
}

}  // namespace
}  // namespace gflow::cli
