// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace gflow {
namespace {

using Words = std::vector<std::string>;
using namespace std::string_literals;
using namespace std::string_view_literals;

TEST(Text, TrimsBlanksOfEveryKind) {
  EXPECT_EQ(trim(" \t\r\n\f\v a b \n"), "a b");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, LowersAsciiOnly) { EXPECT_EQ(to_lower("AZaz09\xc3\x84"), "azaz09\xc3\x84"); }

TEST(Text, SplitsIntoAllPieces) {
  using Pieces = std::vector<std::string_view>;
  EXPECT_EQ(split("a,,b", ','), (Pieces{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (Pieces{""}));
  EXPECT_EQ(split(",", ','), (Pieces{"", ""}));
  EXPECT_EQ(split("abc", ','), (Pieces{"abc"}));
}

TEST(Text, JoinsPieces) {
  EXPECT_EQ(join(Words{"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(join(Words{}, ","), "");
}

TEST(Text, NumbersAreWholeTextsWithoutSign) {
  struct Row {
    std::string_view text;
    std::optional<std::uint64_t> number;
  };
  const std::array rows = {Row{"0", 0},
                           Row{"007", 7},
                           Row{"18446744073709551615", UINT64_MAX},
                           Row{"18446744073709551616", {}},
                           Row{"", {}},
                           Row{" 1", {}},
                           Row{"1 ", {}},
                           Row{"+1", {}},
                           Row{"-1", {}},
                           Row{"0x1", {}},
                           Row{"1.0", {}},
                           Row{"\xef\xbc\x91", {}},
                           Row{"1\0"sv, {}}};
  for (const Row& row : rows) EXPECT_EQ(parse_number(row.text), row.number) << row.text;
}

TEST(Text, PrintableIsFitForATerminal) {
  struct Row {
    std::string_view text;
    std::string_view shown;
  };
  const std::array rows = {Row{"plain text", "plain text"},
                           Row{"训练 GPU", "训练 GPU"},
                           Row{"a\nb\tc\rd", "a\\nb\\tc\\x0dd"},
                           Row{"\x1b[31mred", "\\x1b[31mred"},
                           Row{"\x7f", "\\x7f"},
                           Row{"nul\0!"sv, "nul\\x00!"},
                           Row{"\xff\xfe", "\\xff\\xfe"},
                           Row{"\xc2\x9b"
                               "31m",
                               "\\xc2\\x9b31m"},  // C1: CSI
                           Row{"\xe2\x80\xae"
                               "abc",
                               "\\xe2\\x80\\xaeabc"},               // right-to-left override
                           Row{"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},  // isolate
                           Row{"\xd8\x9c", "\\xd8\\x9c"},           // Arabic letter mark
                           Row{"\xe2\x80\x8f", "\\xe2\\x80\\x8f"},  // right-to-left mark
                           Row{"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},  // line separator
                           Row{"\xc0\xaf", "\\xc0\\xaf"},           // overlong
                           Row{"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // surrogate
                           Row{"\xe8\xae", "\\xe8\\xae"},           // cut short
                           Row{"", ""}};
  for (const Row& row : rows) EXPECT_EQ(printable(row.text), row.shown);
}

TEST(Text, PrintableOfEveryByteIsPrintableAndAtMostFourTimesLonger) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(3, static_cast<char>(byte));
    const std::string shown = printable(text);
    EXPECT_EQ(printable(shown), shown) << byte;
    EXPECT_LE(shown.size(), 4 * text.size()) << byte;
  }
}

TEST(Text, Utf8IsWellFormedAndWithoutNul) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("\xf0\x9f\x9a\x80 rocket"));
  EXPECT_TRUE(is_utf8("a\x1b"));
  EXPECT_FALSE(is_utf8("a\0b"sv));
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));  // over U+10FFFF
  EXPECT_FALSE(is_utf8("\x80"));
}

TEST(Text, ShellSplitsAsAShellDoes) {
  struct Row {
    std::string_view line;
    Words words;
  };
  const std::vector<Row> rows = {
      {"", {}},
      {" \t\n", {}},
      {"a b\tc\nd", {"a", "b", "c", "d"}},
      {"'a b' \"c d\"", {"a b", "c d"}},
      {"a'b'\"c\"d", {"abcd"}},
      {"'' \"\"", {"", ""}},
      {"a\\ b\\'", {"a b'"}},
      {"end\\ ", {"end "}},
      {R"("\$ \" \\ \a")", {R"($ " \ \a)"}},
      {R"('\a"')", {R"(\a")"}},
      {"a\\\nb \"c\\\nd\"", {"ab", "cd"}},
      {"last\\", {"last\\"}},
      {"--x 1 # why", {"--x", "1"}},
      {"a#b '#c' \\#d", {"a#b", "#c", "#d"}},
      {"# one\ntwo", {"two"}},
      {"a|b;c $HOME *", {"a|b;c", "$HOME", "*"}},
      {"\xff '\x01'", {"\xff", "\x01"}},
  };
  for (const Row& row : rows) EXPECT_EQ(shell_split(row.line), row.words) << row.line;
}

TEST(Text, AnOpenQuoteIsAnError) {
  for (const std::string_view line : {"'a", "\"a", "a 'b\" c", "\"a\\\"", "'a\\'b'"}) {
    const auto words = shell_split(line);
    ASSERT_FALSE(words) << line;
    EXPECT_EQ(words.error().code, Code::Usage);
    EXPECT_TRUE(words.error().message.ends_with("is opened and never closed"));
  }
}

TEST(Text, ShellQuoteKeepsPlainWordsPlain) {
  EXPECT_EQ(shell_quote(Words{"python", "train.py", "--lr=0.1"}), "python train.py --lr=0.1");
  EXPECT_EQ(shell_quote(Words{"echo", "a b", "", "it's"}), "echo 'a b' '' 'it'\\''s'");
  EXPECT_EQ(shell_quote(Words{"A=1", "B=2"}), "'A=1' B=2");
  EXPECT_EQ(shell_quote(Words{}), "");
}

TEST(Text, WhatIsQuotedSplitsBack) {
  const std::vector<Words> rows = {{"a", "b c", ""},
                                   {"'", "\"", "\\", "\\\\", "$x", "`id`"},
                                   {"#no comment", "a\nb", "\t", "~", "*", "!"},
                                   {"\xff\x01", "训练", "A=1", "-"},
                                   {""},
                                   {"nul\0nul"s}};
  for (const Words& words : rows) EXPECT_EQ(shell_split(shell_quote(words)), words);
}

TEST(Text, NearestNamesWhatWasMeant) {
  const Words known = {"list", "submit", "cancel", "gpus", "priority"};
  struct Row {
    std::string_view word;
    std::optional<std::string> best;
  };
  const std::vector<Row> rows = {{"lst", "list"},
                                 {"SUBMIT", "submit"},
                                 {"priorty", "priority"},
                                 {"gpu", "gpus"},
                                 {"frobnicate", {}},
                                 {"x", {}},
                                 {"", {}}};
  for (const Row& row : rows) EXPECT_EQ(nearest(row.word, known), row.best) << row.word;
  EXPECT_EQ(nearest(std::string(100'000, 'x'), known), std::nullopt);
  EXPECT_EQ(nearest("list", {}), std::nullopt);
}

TEST(Text, GlobsMatchTheWholeText) {
  struct Row {
    std::string_view pattern;
    std::string_view text;
    bool matches;
  };
  const std::array rows = {Row{"*", "", true},
                           Row{"", "", true},
                           Row{"", "a", false},
                           Row{"a*c", "abbbc", true},
                           Row{"a*c", "abbbd", false},
                           Row{"a?c", "abc", true},
                           Row{"a?c", "ac", false},
                           Row{"*b*b*", "abab", true},
                           Row{"exp-*", "exp-1", true},
                           Row{"exp-*", "my-exp-1", false},
                           Row{"**", "x", true},
                           Row{"?", "", false},
                           Row{"[a]", "a", false}};
  for (const Row& row : rows) {
    EXPECT_EQ(glob_match(row.pattern, row.text), row.matches) << row.pattern << " " << row.text;
  }
  // Backtracking that is not linear in the number of stars would not come back.
  const std::string stars = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(glob_match(stars, std::string(5'000, 'a')));
}

TEST(Text, WidthCountsColumns) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("训练"), 4U);
  EXPECT_EQ(display_width("e\xcc\x81"), 1U);         // e and a combining acute
  EXPECT_EQ(display_width("\xf0\x9f\x9a\x80"), 2U);  // rocket
  EXPECT_EQ(display_width("\xef\xbc\x88"), 2U);      // full-width bracket
  EXPECT_EQ(display_width("\xff"), 4U);              // as printable() shows it
}

TEST(Text, IsCutToColumns) {
  struct Case {
    std::string_view text;
    std::size_t width;
    std::string_view end;
    std::string_view middle;
  };
  const Case kCases[] = {
      {"train", 5, "train", "train"},
      {"train-resnet", 8, "train-r…", "trai…net"},
      {"train-resnet", 7, "train-…", "tra…net"},
      {"train", 1, "…", "…"},
      {"train", 0, "", ""},
      {"训练任务", 8, "训练任务", "训练任务"},
      {"训练任务", 7, "训练任…", "训…任务"},  // three columns and a half are one character
      {"训练任务", 6, "训练…", "训…务"},
      {"训练", 1, "…", "…"},
      {"ae\xcc\x81z12", 4, "ae\xcc\x81z…", "ae\xcc\x81…2"},  // an accent stays with its letter
      {"\xff\xff", 5, "\xff…", "…\xff"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(cut_end(c.text, c.width), c.end) << c.text << ' ' << c.width;
    EXPECT_EQ(cut_middle(c.text, c.width), c.middle) << c.text << ' ' << c.width;
    EXPECT_LE(display_width(cut_end(c.text, c.width)), c.width) << c.text;
    EXPECT_LE(display_width(cut_middle(c.text, c.width)), c.width) << c.text;
  }
}

TEST(Text, CutsWordsAndNoNumber) {
  struct Case {
    std::string_view text;
    std::size_t width;
    std::string_view want;
  };
  const Case kCases[] = {{"(behind job 12)", 15, "(behind job 12)"},
                         {"(behind job 12)", 14, "(behi… job 12)"},
                         {"(behind job 12)", 10, "(b… j… 12)"},
                         {"(behind job 12)", 9, "(behind …"},
                         {"(Dependency 1-2)", 15, "(Dependen… 1-2)"},
                         {"(Dependency 1-3,9,15)", 13, "(D… 1-3,9,15)"},
                         {"(Dependency 1-3,9,15)", 12, "(Dependency…"},
                         {"╰─→ see job 26", 10, "╰─→ see j…"},
                         {"0 (GPU memory 20G/8G)", 18, "0 (GPU me… 20G/8G)"},
                         {"0,1,2,3,4,5,6,7", 8, "0,1,2,…"},
                         {"100002", 6, "100002"},
                         {"100002", 5, "…"},
                         {"14-100013", 6, "14-…"},
                         {"gpu12:0,1", 7, "gpu12:…"},
                         {"（排在作业 12 之后）", 16, "（排… 12 之后）"},
                         {"x", 0, ""}};
  for (const Case& c : kCases) {
    EXPECT_EQ(cut_words(c.text, c.width), c.want) << c.text << ' ' << c.width;
    EXPECT_LE(display_width(cut_words(c.text, c.width)), c.width) << c.text;
  }
}

TEST(Text, WrapsAtSpaces) {
  using Lines = std::vector<std::string_view>;
  struct Case {
    std::string_view text;
    std::size_t width;
    Lines lines;
  };
  const Case kCases[] = {{"", 5, {}},
                         {"fits", 4, {"fits"}},
                         {"two words", 8, {"two", "words"}},
                         {"two words", 3, {"two", "wor", "ds"}},
                         {"a b c d", 3, {"a b", "c d"}},
                         {"longest", 3, {"lon", "ges", "t"}},
                         {" at first", 3, {" at", "fir", "st"}},
                         {"训练 任务", 5, {"训练", "任务"}},
                         {"训练任务", 5, {"训练", "任务"}},
                         {"训练", 1, {"训", "练"}},
                         {"ab", 0, {"a", "b"}}};
  for (const Case& c : kCases) EXPECT_EQ(wrapped(c.text, c.width), c.lines) << c.text;
}

}  // namespace
}  // namespace gflow
