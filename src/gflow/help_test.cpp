// SPDX-License-Identifier: Apache-2.0
#include "command/help.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
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

TEST(Help, IsAsReviewed) {
  for (const Command& command : suite()) {
    expect_golden_help(command, command.name);
    for (const Command& sub : command.subcommands) {
      expect_golden_help(sub, command.name + " " + sub.name);
    }
  }
  expect_golden_help(gflow_command(), "gflow");
  for (const Command& sub : gflow_command().subcommands) {
    if (sub.name[0] != 'g') expect_golden_help(sub, "gflow " + sub.name);
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
  }
  EXPECT_TRUE(command.run || !command.subcommands.empty()) << command.name;
  for (const Command& sub : command.subcommands) expect_sound(sub);
}

TEST(Table, NamesEverythingOnce) { expect_sound(gflow_command()); }

TEST(ManPage, IsRoffWithASectionForEachPart) {
  for (const Command& command : suite()) {
    const std::string page = man_page(command, "1.2");
    EXPECT_TRUE(page.starts_with(".TH ")) << page.substr(0, 40);
    for (const std::string_view section :
         {"NAME", "SYNOPSIS", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"}) {
      EXPECT_NE(page.find(fmt::format("\n.SH {}\n", section)), std::string::npos)
          << command.name << " " << section;
    }
    for (const std::string_view line : split(page, '\n')) {
      EXPECT_FALSE(line.starts_with('\'')) << line;
    }
  }
}

TEST(ManPage, EscapesWhatRoffWouldTake) {
  const Command command{
      .name = "demo", .summary = "a -- b", .description = ".start\n\n'quoted' back\\slash ~ ^ `x`"};
  const std::string page = man_page(command, "1");
  EXPECT_NE(page.find("\n\\&.start\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\n\\&\\(aqquoted\\(aq back\\eslash \\(ti \\(ha \\(gax\\(ga\n"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("demo \\- a \\-\\- b\n"), std::string::npos) << page;
}

TEST(Version, IsThatOfTheBuild) {
  const auto cmake = os::read_file(std::string(GFLOW_SOURCE_DIR) + "/CMakeLists.txt");
  ASSERT_TRUE(cmake);
  EXPECT_NE(cmake->find(fmt::format("project(gflow VERSION {} ", kVersion)), std::string::npos);
}

}  // namespace
}  // namespace gflow::cli
