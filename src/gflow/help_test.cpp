// SPDX-License-Identifier: Apache-2.0
#include "command/help.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "base/catalogue_for_tests.h"
#include "base/message_catalogue.h"
#include "base/text.h"
#include "base/translate.h"
#include "base/version.h"
#include "cli/commands.h"
#include "command/golden_test.h"
#include "gflow/gflow.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::cli {
namespace {

void expect_golden_help(const Command& command, const std::string& program) {
  std::string file = program;
  for (char& c : file) c = c == ' ' ? '-' : c;
  expect_golden(file + ".help", help_text(command, program));
}

/// And that of each command below it.
void expect_golden_helps(const Command& command, const std::string& program) {
  expect_golden_help(command, program);
  for (const Command& sub : command.subcommands) expect_golden_helps(sub, program + " " + sub.name);
}

TEST(Help, IsAsReviewed) {
  for (const Command& command : suite()) expect_golden_helps(command, command.name);
  expect_golden_help(gflow_command(), "gflow");
  for (const Command& sub : gflow_command().subcommands) {
    if (sub.name[0] != 'g') expect_golden_helps(sub, "gflow " + sub.name);
  }
}

TEST(Help, FitsEightyColumns) {
  for (const Command& command : suite()) {
    const std::string text = help_text(command, command.name);
    for (const std::string_view line : split(text, '\n')) {
      EXPECT_LE(display_width(line), 80U) << line;
    }
  }
}

/// Whether the text has all pieces, each behind the one before it.
testing::AssertionResult holds_in_order(std::string_view text,
                                        std::initializer_list<std::string_view> pieces) {
  std::size_t at = 0;
  for (const std::string_view piece : pieces) {
    at = text.find(piece, at);
    if (at == std::string_view::npos)
      return testing::AssertionFailure() << piece << " in\n" << text;
    at += piece.size();
  }
  return testing::AssertionSuccess();
}

void expect_sound(const Command& command) {
  std::set<std::string> names;
  std::set<char> letters;
  for (const Option& option : command.all_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << command.name << " --" << option.name;
    for (const std::string& alias : option.aliases) {
      EXPECT_TRUE(names.insert(alias).second) << command.name << " --" << alias;
    }
    for (const char letter : option.letters) {
      EXPECT_TRUE(letters.insert(letter).second) << command.name << " -" << letter;
    }
    EXPECT_FALSE(option.help.empty() && option.refused.empty()) << option.name;
  }
  for (const Option& option : command.options) {
    for (const std::string& other : option.excludes) {
      EXPECT_TRUE(names.contains(other)) << command.name << " --" << other;
    }
    EXPECT_TRUE(option.needs.empty() || names.contains(option.needs)) << option.name;
  }
  EXPECT_TRUE(command.run || !command.subcommands.empty()) << command.name;
  for (const Command& sub : command.subcommands) expect_sound(sub);
}

TEST(Table, NamesEverythingOnce) { expect_sound(gflow_command()); }

TEST(ManPage, IsRoffWithASectionForEachPart) {
  for (const Command& command : suite()) {
    const std::string page = man_page(command, command.name, "1.2");
    EXPECT_TRUE(page.starts_with(".TH ")) << page.substr(0, 40);
    for (const std::string_view section :
         {"NAME", "SYNOPSIS", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"}) {
      EXPECT_NE(page.find(fmt::format("\n.SH {}\n", section)), std::string::npos)
          << command.name << " " << section;
    }
    for (const std::string_view line : split(page, '\n')) {
      EXPECT_FALSE(line.starts_with('\'')) << line;
    }
    for (const Program& other : kPrograms) {
      const std::string reference = fmt::format("\\fB{}\\fR(1)", other.name);
      EXPECT_EQ(page.find(reference) != std::string::npos, other.name != command.name)
          << command.name << " leads to " << other.name;
    }
  }
}

TEST(ManPage, EscapesWhatRoffWouldTake) {
  const Command command{
      .name = "demo", .summary = "a -- b", .description = ".start\n\n'quoted' back\\slash ~ ^ `x`"};
  const std::string page = man_page(command, "demo", "1");
  EXPECT_NE(page.find("\n\\&.start\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\n\\&\\(aqquoted\\(aq back\\eslash \\(ti \\(ha \\(gax\\(ga\n"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("demo \\- a \\-\\- b\n"), std::string::npos) << page;
}

Command command_called(std::string_view name) {
  for (Command& command : gflow_command().subcommands) {
    if (command.name == name) return std::move(command);
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(ManPage, TellsOfSubcommandsHoweverDeep) {
  EXPECT_TRUE(holds_in_order(man_page(command_called("gctl"), "gctl", "1"),
                             {".SS \"token\"\n",
                              ".SS \"token create\"\n\\fBgctl token create\\fR [\\-\\-scope SCOPE]",
                              "\\fINAME\\fR\nName of the token.\n",
                              ".TP\n\\fB\\-\\-expires TIME\\fR\n",
                              "\\fBgctl token create laptop ",
                              ".SS \"token revoke\"\n",
                              ".SS \"remote add\"\n"}));
}

TEST(ManPage, OfTheWholeSuiteLeadsToTheOthers) {
  const std::string page = man_page(gflow_command(), "gflow", "1");
  for (const Command& sub : gflow_command().subcommands) {
    EXPECT_NE(page.find(fmt::format("\\fBgflow {}\\fR\n", sub.name)), std::string::npos)
        << sub.name;
    EXPECT_FALSE(sub.page.empty()) << sub.name;
  }
  EXPECT_NE(page.find(": \\fBgflow\\-lab\\fR(1)\n"), std::string::npos) << page;
  EXPECT_EQ(page.find("\\-\\-gpu\\-memory"), std::string::npos) << page;
}

TEST(ManPage, OfACommandBelowGflowIsByItsWholeName) {
  EXPECT_TRUE(holds_in_order(man_page(command_called("lab"), "gflow lab", "1"),
                             {".TH GFLOW\\-LAB 1 ",
                              "\n.SH NAME\ngflow\\-lab \\- ",
                              "\n.SH SYNOPSIS\n\\fBgflow lab\\fR EXPERIMENT",
                              ".SS \"replay\"\n\\fBgflow lab replay\\fR "}));
}

TEST(ManPage, HasItsHeadingsInTheLanguageOfTheReader) {
  const std::string bytes =
      catalogue_bytes({{"", "\nLanguage: zh_CN\n"}, {"EXIT STATUS", "退出状态"}, {"NAME", "名称"}});
  const auto chinese = MessageCatalogue::read(bytes);
  ASSERT_TRUE(chinese);
  const Command gqueue = command_called("gqueue");
  set_messages(&*chinese);
  const std::string page = man_page(gqueue, "gqueue", "1");
  set_messages(nullptr);
  EXPECT_NE(page.find("\n.SH 名称\n"), std::string::npos) << page.substr(0, 200);
  EXPECT_NE(page.find("\n.SH 退出状态\n"), std::string::npos);
}

TEST(Version, IsThatOfTheBuild) {
  const auto cmake = os::read_file(std::string(GFLOW_SOURCE_DIR) + "/CMakeLists.txt");
  ASSERT_TRUE(cmake);
  EXPECT_NE(cmake->find(fmt::format("project(gflow VERSION {} ", kVersion)), std::string::npos);
}

}  // namespace
}  // namespace gflow::cli
