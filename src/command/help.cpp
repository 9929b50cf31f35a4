// SPDX-License-Identifier: Apache-2.0
#include "command/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "base/utf8.h"

namespace gflow::cli {

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kHeadColumns = 28;

/// Text that stays on one line, and whether a space stands before it.
struct Piece {
  std::string_view text;
  bool is_spaced = false;
};

/// Chinese has no spaces between words: a line may end after any character but an opening bracket,
/// and begin with any but what closes.
bool may_break(char32_t before, char32_t after) {
  constexpr std::u32string_view kOpen = U"（“‘《「";
  constexpr std::u32string_view kClose = U"，。、；：？！）”’》」…";
  if (kOpen.contains(before) || kClose.contains(after)) return false;
  return utf8::columns(before) == 2 || utf8::columns(after) == 2;
}

std::vector<Piece> pieces_of(std::string_view paragraph) {
  std::vector<Piece> pieces;
  for (const std::string_view word : split(paragraph, ' ')) {
    bool is_spaced = true;
    std::size_t begin = 0;
    char32_t before = 0;
    for (std::size_t at = 0; at < word.size();) {
      const utf8::Char next = utf8::next(word.substr(at));
      if (at > begin && may_break(before, next.point)) {
        pieces.push_back({word.substr(begin, at - begin), std::exchange(is_spaced, false)});
        begin = at;
      }
      before = next.point;
      at += next.length;
    }
    if (begin < word.size()) pieces.push_back({word.substr(begin), is_spaced});
  }
  return pieces;
}

/// Where the first words of a line end and a gap begins; its end where it has none.
std::size_t end_of_words(std::string_view line) { return std::min(line.find("  "), line.size()); }

std::size_t begin_of_words(std::string_view line, std::size_t from) {
  return std::min(line.find_first_not_of(' ', from), line.size());
}

/// A line that is too wide, on several.
std::string broken(std::string_view line, std::size_t columns) {
  constexpr std::size_t kNarrowest = 20;  // less is no room for words
  constexpr std::size_t kDeeper = 4;
  std::size_t margin = begin_of_words(line, 0);
  std::size_t end = margin + end_of_words(line.substr(margin));
  const std::string_view first = line.substr(margin, end - margin);
  if (first.ends_with('.') && end < line.size()) {  // a number, and what it counts
    margin = begin_of_words(line, end);
    end = margin + end_of_words(line.substr(margin));
  }
  std::string out(line.substr(0, margin));
  std::vector<std::string> below;
  const auto add = [&](std::string_view words, std::size_t indent) {
    const std::size_t room = std::max(columns - std::min(columns, indent), kNarrowest);
    for (const std::string& part : wrap(words, room)) {
      below.push_back((below.empty() ? "" : std::string(indent, ' ')) + part);
    }
  };
  add(line.substr(margin, end - margin), margin);
  const std::size_t rest = begin_of_words(line, end);
  if (rest < line.size()) add(line.substr(rest), margin + kDeeper);
  return out + join(below, "\n");
}

/// A head and a text beside it, or below it where the head is too long.
std::string entry(const std::string& head, std::string_view text) {
  const std::vector<std::string> lines = wrap(text, kColumns - kHeadColumns);
  std::string out = "  " + head;
  const std::size_t used = 2 + display_width(head);
  std::size_t first = 0;
  if (used + 2 <= kHeadColumns && !lines.empty()) {
    out += std::string(kHeadColumns - used, ' ') + lines[0];
    first = 1;
  }
  out += '\n';
  for (std::size_t i = first; i < lines.size(); ++i) {
    out += std::string(kHeadColumns, ' ') + lines[i] + '\n';
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

std::string subcommand_lines(const Command& command) {
  std::string out;
  for (const Command& sub : command.subcommands) {
    if (sub.hidden) continue;
    std::string head = sub.name;
    if (!sub.aliases.empty()) head += fmt::format(" ({})", fmt::join(sub.aliases, ", "));
    out += entry(head, sub.summary + tr("."));
  }
  return out.empty() ? out : tr("\nCommands:\n") + out;
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string_view paragraph : split(text, '\n')) {
    std::string line;
    std::size_t used = 0;
    for (const Piece& piece : pieces_of(paragraph)) {
      const std::size_t wide = display_width(piece.text);
      const std::size_t gap = piece.is_spaced && used > 0 ? 1 : 0;
      if (used > 0 && used + gap + wide > width) {
        lines.push_back(std::move(line));
        line.clear();
        used = 0;
      }
      if (gap > 0 && used > 0) line += ' ';
      used += (gap > 0 && used > 0 ? 1 : 0) + wide;
      line += piece.text;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string fit_lines(std::string_view text, std::size_t columns) {
  std::string out;
  const bool ends = text.ends_with('\n');
  if (ends) text.remove_suffix(1);
  for (const std::string_view line : split(text, '\n')) {
    out +=
        columns == 0 || display_width(line) <= columns ? std::string(line) : broken(line, columns);
    out += '\n';
  }
  if (!ends) out.pop_back();
  return out;
}

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

std::string help_text(const Command& command, const std::string& program) {
  std::string out =
      fmt::format("{} - {}\n\n{}", program, command.summary, usage_lines(command, program));
  if (!command.description.empty()) {
    out += '\n';
    for (const std::string& line : wrap(command.description, kColumns)) out += line + '\n';
  }
  out += subcommand_lines(command);
  if (!command.words.help.empty()) {
    out += tr("\nArguments:\n") + entry(command.words.name, command.words.help);
  }
  for (const OptionGroup& group : option_groups(command)) {
    out += tr_format("\n{}:\n", group.heading);
    for (const Option& option : group.options) {
      out += entry(option_head(option), option_help(option));
    }
  }
  for (const Example& note : command.notes) {
    out += tr_format("\n{}:\n", note.line);
    for (const std::string& line : wrap(note.text, kColumns - 2)) out += "  " + line + '\n';
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
  out += fmt::format("{}\n", fmt::join(wrap(codes, kColumns - 2), "\n  "));
  for (const Legend& legend : command.legends) {
    out += tr_format("\n{}:\n", legend.heading);
    for (const Example& word : legend.words) out += entry(word.line, word.text);
  }
  return out;
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
