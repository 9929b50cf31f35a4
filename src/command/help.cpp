// SPDX-License-Identifier: Apache-2.0
#include "command/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "command/wrap.h"

namespace gflow::cli {

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kNarrowestHelp = 20;

/// A head and a text beside it, or below it where the head is too long.
std::string entry(const std::string& head, std::string_view text, std::size_t columns) {
  constexpr std::size_t kNarrow = 60;
  const std::size_t margin = columns < kNarrow ? 6 : 28;
  const std::vector<std::string> lines = wrap(text, columns - margin);
  std::string out = "  " + head;
  const std::size_t used = 2 + display_width(head);
  std::size_t first = 0;
  if (used + 2 <= margin && !lines.empty()) {
    out += std::string(margin - used, ' ') + lines[0];
    first = 1;
  }
  out += '\n';
  for (std::size_t i = first; i < lines.size(); ++i) {
    out += std::string(margin, ' ') + lines[i] + '\n';
  }
  return out;
}

std::string usage_lines(const Command& command, const std::string& program) {
  std::string out;
  for (const std::string& form : command.usage) {
    const std::string usage = tr("Usage: ");
    const std::string margin(display_width(usage), ' ');
    out += fmt::format("{}{} {}\n", out.empty() ? usage : margin, program, form);
  }
  if (command.usage.empty()) out = tr_format("Usage: {} [options]\n", program);
  return out;
}

std::string subcommand_lines(const Command& command, std::size_t columns) {
  std::string out;
  for (const Command& sub : command.subcommands) {
    if (sub.hidden) continue;
    std::string head = sub.name;
    if (!sub.aliases.empty()) head += fmt::format(" ({})", fmt::join(sub.aliases, ", "));
    out += entry(head, sub.summary + tr("."), columns);
  }
  return out.empty() ? out : tr("\nCommands:\n") + out;
}

}  // namespace

std::string option_head(const Option& option) {
  std::string head = option.letters.empty() ? "    " : fmt::format("-{}, ", option.letters[0]);
  head += "--" + option.name;
  if (option.value.empty()) return head;
  return head + (option.implied.empty() ? " " + option.value : "[=" + option.value + "]");
}

std::string option_help(const Option& option) {
  std::vector<std::string> others;
  for (std::size_t i = 1; i < option.letters.size(); ++i) {
    others.push_back(fmt::format("-{}", option.letters[i]));
  }
  for (const std::string& alias : option.aliases) others.push_back("--" + alias);
  if (others.empty()) return option.help;
  return tr_format("{} Also {}.", option.help, fmt::join(others, ", "));
}

std::vector<OptionGroup> option_groups(const Command& command) {
  std::vector<OptionGroup> groups;
  for (const Option& option : command.all_options()) {
    if (option.hidden || !option.refused.empty()) continue;
    const std::string heading = option.group.empty() ? tr("Options") : option.group;
    auto at = std::ranges::find(groups, heading, &OptionGroup::heading);
    if (at == groups.end()) at = groups.insert(groups.end(), OptionGroup{heading, {}});
    at->options.push_back(option);
  }
  return groups;
}

std::string help_text(const Command& command, const std::string& program, std::size_t screen) {
  const std::size_t columns =
      screen == 0 ? kColumns : std::clamp<std::size_t>(screen, kNarrowestHelp, kColumns);
  std::string out =
      fmt::format("{} - {}\n\n{}", program, command.summary, usage_lines(command, program));
  if (!command.description.empty()) {
    out += '\n';
    for (const std::string& line : wrap(command.description, columns)) out += line + '\n';
  }
  out += subcommand_lines(command, columns);
  if (!command.words.help.empty()) {
    out += tr("\nArguments:\n") + entry(command.words.name, command.words.help, columns);
  }
  for (const OptionGroup& group : option_groups(command)) {
    out += tr_format("\n{}:\n", group.heading);
    for (const Option& option : group.options) {
      out += entry(option_head(option), option_help(option), columns);
    }
  }
  for (const Example& note : command.notes) {
    out += tr_format("\n{}:\n", note.line);
    for (const std::string& line : wrap(note.text, columns - 2)) out += "  " + line + '\n';
  }
  if (!command.examples.empty()) out += tr("\nExamples:\n");
  for (const Example& example : command.examples) {
    out += fmt::format("  {}\n      {}\n", example.line, example.text);
  }
  out += tr("\nExit codes:\n  ");
  std::string codes;
  for (const ExitCode& exit : exit_codes()) {
    codes += fmt::format("{}{} {}", codes.empty() ? "" : tr(", "), exit.code, tr(exit.meaning));
  }
  out += fmt::format("{}\n", fmt::join(wrap(codes, columns - 2), "\n  "));
  for (const Legend& legend : command.legends) {
    out += tr_format("\n{}:\n", legend.heading);
    for (const Example& word : legend.words) out += entry(word.line, word.text, columns);
  }
  return fit_lines(out, screen);
}

const std::vector<ExitCode>& exit_codes() {
  static const std::vector<ExitCode> codes = {
      {0, tr_later("ok")},
      {1, tr_later("failure")},
      {2, tr_later("usage")},
      {3, tr_later("not found")},
      {4, tr_later("daemon unreachable")},
      {5, tr_later("permission")},
      {6, tr_later("wrong state")},
      {7, tr_later("can never be satisfied or refused by policy")},
      {8, tr_later("timeout")},
  };
  return codes;
}

}  // namespace gflow::cli
