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
      {"without an end", 22, "one two three four five six", "one two three four\nfive six"},
  };
  for (const FittedLines& one : cases) {
    EXPECT_EQ(fit_lines(one.text, one.columns), one.fitted) << one.name;
  }
}

}  // namespace
}  // namespace gflow::cli
