// SPDX-License-Identifier: Apache-2.0
#include "command/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "command/times.h"

namespace gflow::cli {
namespace {

const std::vector<Column> kColumns = {{"JOBID"}, {"NAME", 16}, {"NODES"}, {"NODELIST(REASON)"}};

TEST(Table, IsAsInTheDocuments) {
  EXPECT_EQ(table_text(kColumns,
                       {{{"1"}, {"train-resnet"}, {"1"}, {"0"}},
                        {{"2"}, {"train-vit"}, {"1"}, {"1"}},
                        {{"3"}, {"train-bert"}, {"2"}, {"2,3"}}},
                       Header::Shown,
                       Painter()),
            "JOBID    NAME                NODES    NODELIST(REASON)\n"
            "1        train-resnet        1        0\n"
            "2        train-vit           1        1\n"
            "3        train-bert          2        2,3\n");
  EXPECT_EQ(
      table_text(
          kColumns, {{{"42"}, {"brave-river-1234"}, {"2"}, {"1,2"}}}, Header::Shown, Painter()),
      "JOBID    NAME                NODES    NODELIST(REASON)\n"
      "42       brave-river-1234    2        1,2\n");
  EXPECT_EQ(table_text({{"JOBID"}, {"ST"}, {"NODES"}, {"NODELIST(REASON)"}},
                       {{{"42"}, {"PD"}, {"1"}, {"(Resources)"}}},
                       Header::Shown,
                       Painter()),
            "JOBID    ST    NODES    NODELIST(REASON)\n"
            "42       PD    1        (Resources)\n");
}

TEST(Table, CountsColumnsOfTheTerminalNotBytes) {
  EXPECT_EQ(
      table_text({{"NAME"}, {"X"}}, {{{"训练"}, {"1"}}, {{"é"}, {"2"}}}, Header::Shown, Painter()),
      "NAME    X\n"
      "训练    1\n"
      "é       2\n");
}

TEST(Table, HasNoSpacesAtTheEndAndNoHeaderUnlessWanted) {
  EXPECT_EQ(table_text({{"A"}, {"B"}}, {{{"1"}, {""}}, {{""}, {"2"}}}, Header::Hidden, Painter()),
            "1\n     2\n");
  EXPECT_EQ(table_text({{"A"}}, {}, Header::Shown, Painter()), "A\n");
}

TEST(Table, ColoursDoNotCountAsWidth) {
  EXPECT_EQ(
      table_text({{"A"}, {"B"}}, {{{"x", Style::Green}, {"y"}}}, Header::Hidden, Painter(true)),
      "\x1b[32mx\x1b[0m    y\n");
}

TEST(Table, IsWrittenInOtherForms) {
  const std::vector<Column> columns = {{"JOBID"}, {"NAME", 16}};
  const std::vector<Row> rows = {{{"1"}, {"a,\"b\""}}, {{"2"}, {"c"}}};
  EXPECT_EQ(csv_text(columns, rows, Header::Shown), "JOBID,NAME\n1,\"a,\"\"b\"\"\"\n2,c\n");
  EXPECT_EQ(tsv_text(columns, rows, Header::Hidden), "1\ta,\"b\"\n2\tc\n");
  EXPECT_EQ(yaml_text(columns, rows),
            "- \"jobid\": \"1\"\n  \"name\": \"a,\\\"b\\\"\"\n"
            "- \"jobid\": \"2\"\n  \"name\": \"c\"\n");
  EXPECT_EQ(yaml_text(columns, {}), "[]\n");
}

const std::vector<Column> kScreen = {{.header = "JOBID"},
                                     {.header = "NAME", .cut = Cut::Middle, .narrowest = 8},
                                     {.header = "USER", .leaves = 1},
                                     {.header = "UTIL", .leaves = 2, .align = Align::Right},
                                     {.header = "WHY", .cut = Cut::End, .narrowest = 6}};
const std::vector<Row> kScreenRows = {
    {{"1"}, {"train-resnet"}, {"alice"}, {"92%"}, {"0,1"}},
    {{"12"}, {"训练任务很长"}, {"bob"}, {"4%"}, {"(Resources 7/8)"}},
    {{"3"}, {""}, {""}, {""}, {"(held)"}}};

TEST(ScreenTable, CutsThenLeavesColumnsOut) {
  const auto at = [](std::size_t width) {
    return screen_table(kScreen, kScreenRows, width, Header::Shown, Painter());
  };
  EXPECT_EQ(at(80),
            "JOBID  NAME          USER   UTIL  WHY\n"
            "1      train-resnet  alice   92%  0,1\n"
            "12     训练任务很长  bob      4%  (Resources 7/8)\n"
            "3                                 (held)\n");
  EXPECT_EQ(at(44),
            "JOBID  NAME         USER   UTIL  WHY\n"
            "1      train…esnet  alice   92%  0,1\n"
            "12     训练…务很长  bob      4%  (Resources…\n"
            "3                                (held)\n");
  EXPECT_EQ(at(30),
            "JOBID  NAME      USER   WHY\n"
            "1      trai…net  alice  0,1\n"
            "12     训练…长   bob    (Reso…\n"
            "3                       (held)\n");
  EXPECT_EQ(at(24),
            "JOBID  NAME      WHY\n"
            "1      trai…net  0,1\n"
            "12     训练…长   (Resou…\n"
            "3                (held)\n");
  // Nothing can leave any more: all give.
  EXPECT_EQ(at(16),
            "JOBID  N…E  WHY\n"
            "1      t…t  0,1\n"
            "12     …长  (Re…\n"
            "3           (he…\n");
}

TEST(ScreenTable, HasNoLineWiderThanTheScreen) {
  for (std::size_t width = 1; width <= 200; ++width) {
    const std::string text = screen_table(kScreen, kScreenRows, width, Header::Shown, Painter());
    EXPECT_EQ(std::ranges::count(text, '\n'), 4) << width;
    for (const std::string_view line : split(text, '\n')) {
      EXPECT_LE(display_width(line), width) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(Color, FollowsTheConventions) {
  struct Case {
    ColorWhen when;
    ColorFacts facts;
    bool want;
  };
  const Case kCases[] = {
      {ColorWhen::Auto, {true, {}, {}, "xterm"}, true},
      {ColorWhen::Auto, {true, {}, {}, ""}, false},
      {ColorWhen::Auto, {false, {}, {}, "xterm"}, false},
      {ColorWhen::Auto, {true, "1", {}, "xterm"}, false},
      {ColorWhen::Auto, {true, "", {}, "xterm"}, true},
      {ColorWhen::Auto, {true, {}, {}, "dumb"}, false},
      {ColorWhen::Auto, {true, {}, {}, {}}, false},
      {ColorWhen::Auto, {false, {}, "1", "xterm"}, true},
      {ColorWhen::Auto, {false, {}, "0", "xterm"}, false},
      {ColorWhen::Auto, {false, "1", "1", "xterm"}, false},
      {ColorWhen::Always, {false, "1", {}, "dumb"}, true},
      {ColorWhen::Never, {true, {}, "1", "xterm"}, false},
  };
  for (std::size_t i = 0; i < std::size(kCases); ++i) {
    EXPECT_EQ(use_color(kCases[i].when, kCases[i].facts), kCases[i].want) << i;
  }
}

TEST(Times, AreLocalAndSayHowFarAway) {
  const WallTime noon = *parse_rfc3339("2026-03-01T12:00:05Z");
  using std::chrono::hours;
  using std::chrono::minutes;
  EXPECT_EQ(local_text(noon, hours(8)), "2026-03-01 20:00:05");
  EXPECT_EQ(local_text(noon, -hours(13)), "2026-02-28 23:00:05");
  EXPECT_EQ(moment_text(noon, noon, Zone(hours(0))), "12:00 (now)");
  EXPECT_EQ(moment_text(noon + minutes(90), noon, Zone(hours(0))), "13:30 (in 1h30m)");
  EXPECT_EQ(moment_text(noon - minutes(1), noon, Zone(hours(0))), "11:59 (1m ago)");
  EXPECT_EQ(moment_text(noon + hours(12), noon, Zone(hours(0))), "2026-03-02 00:00 (in 12h)");
  EXPECT_EQ(brief_moment(noon + hours(11), noon, Zone(hours(0))), "23:00");
  EXPECT_EQ(brief_moment(noon + hours(11), noon, Zone(hours(1))), "Mon 00:00");
  EXPECT_EQ(brief_moment(noon - hours(13), noon, Zone(hours(0))), "Sat 23:00");
  EXPECT_EQ(brief_moment(noon + hours(24 * 7), noon, Zone(hours(0))), "2026-03-08");
}

TEST(Times, AreBriefInColumns) {
  struct Case {
    std::int64_t duration;
    std::string_view want;
  };
  const Case kCases[] = {{-1, "0s"},
                         {0, "0s"},
                         {59, "59s"},
                         {61, "1m1s"},
                         {3600, "1h"},
                         {3661, "1h1m"},
                         {86'400, "1d"},
                         {86'400 + 3'600 + 60, "1d1h"},
                         {86'400 + 60, "1d"}};
  for (const Case& c : kCases) {
    EXPECT_EQ(brief_duration(std::chrono::seconds(c.duration)), c.want) << c.duration;
  }
}

TEST(ScreenTable, GoesOnBelowWhereACellWraps) {
  const std::vector<Column> columns = {
      {.header = "GPU"}, {.header = "WHY", .cut = Cut::Wrap, .narrowest = 4}, {.header = "BY"}};
  const std::vector<Row> rows = {{{"0"}, {"fan is loud"}, {"eve"}}, {{"1"}, {"moved"}, {"bob"}}};
  EXPECT_EQ(screen_table(columns, rows, 17, Header::Shown, Painter()),
            "GPU  WHY      BY\n"
            "0    fan is   eve\n"
            "     loud\n"
            "1    moved    bob\n");
  EXPECT_EQ(screen_table(columns, rows, 0, Header::Shown, Painter()),
            table_text(columns, rows, Header::Shown, Painter()));
}

}  // namespace
}  // namespace gflow::cli
