// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "gflow/gflow.h"
#include "os/file.h"

namespace gflow::cli {
namespace {

/// The words of a line of shell that has no more than quotes.
std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words(1);
  char quote = '\0';
  for (const char c : line) {
    if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    } else if (c == ' ' && quote == '\0') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

/// What stands between backquotes in the last cell of each row of the tables.
std::vector<std::string> commands_in(const std::string& document) {
  std::vector<std::string> commands;
  for (const std::string_view line : split(document, '\n')) {
    if (!line.starts_with("| ")) continue;
    const auto cells = split(line, '|');
    const auto parts = split(cells[cells.size() - 2], '`');
    for (std::size_t i = 1; i < parts.size(); i += 2) commands.emplace_back(parts[i]);
  }
  return commands;
}

TEST(ComingFrom, EveryCommandOfThePageIsUnderstood) {
  std::vector<std::vector<std::string>> pages;
  for (const char* name : {"coming-from.md", "coming-from.zh-CN.md"}) {
    const auto document = os::read_file(fmt::format("{}/docs/{}", GFLOW_SOURCE_DIR, name));
    ASSERT_TRUE(document) << document.error().message;
    pages.push_back(commands_in(*document));
    EXPECT_GT(pages.back().size(), 40U) << name;
    for (const std::string& text : pages.back()) {
      const std::vector<std::string> words = shell_words(text);
      if (words.front() == "gflowd") continue;  // another program, not of this layer
      const auto commands = suite();
      const auto command = std::ranges::find(commands, words.front(), &Command::name);
      ASSERT_NE(command, commands.end()) << text;
      const auto parsed = parse(*command, std::span(words).subspan(1));
      EXPECT_TRUE(parsed) << text << ": " << parsed.error().message;
    }
  }
  EXPECT_EQ(pages[0], pages[1]) << "the two languages differ";
}

}  // namespace
}  // namespace gflow::cli
