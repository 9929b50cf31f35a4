// SPDX-License-Identifier: Apache-2.0
#include "command/wrap.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"

namespace gflow::cli {

namespace {

/// Columns of text that may be painted.
std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t escape = 0; (escape = text.find('\x1b')) != std::string_view::npos;) {
    columns += display_width(text.substr(0, escape));
    text.remove_prefix(std::min(text.find('m', escape), text.size() - 1) + 1);
  }
  return columns + display_width(text);
}

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

constexpr std::size_t kNarrowest = 20;  // columns; less is no room for words

/// A line that is too wide, on several.
std::string broken(std::string_view line, std::size_t columns) {
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

}  // namespace

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string_view paragraph : split(text, '\n')) {
    std::string line;
    std::size_t used = 0;
    for (const Piece& piece : pieces_of(paragraph)) {
      const std::size_t wide = columns_of(piece.text);
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

std::string labelled(std::string_view label, std::string_view text, std::size_t columns) {
  constexpr std::size_t kDeeper = 6;
  std::size_t margin = columns_of(label);
  std::string out(label);
  if (columns > 0 && margin + std::min(kNarrowest, display_width(text)) > columns) {
    margin = kDeeper;
    out = out.substr(0, out.find_last_not_of(' ') + 1) + '\n' + std::string(margin, ' ');
  }
  const std::size_t room = std::max(columns - std::min(columns, margin), kNarrowest);
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (columns == 0 || display_width(line) <= room) {
      lines.emplace_back(line);
    } else {
      std::ranges::move(wrap(line, room), std::back_inserter(lines));
    }
  }
  return out + join(lines, '\n' + std::string(margin, ' ')) + '\n';
}

std::string fit_lines(std::string_view text, std::size_t columns) {
  std::string out;
  const bool ends = text.ends_with('\n');
  if (ends) text.remove_suffix(1);
  for (const std::string_view line : split(text, '\n')) {
    out += columns == 0 || columns_of(line) <= columns ? std::string(line) : broken(line, columns);
    out += '\n';
  }
  if (!ends) out.pop_back();
  return out;
}

}  // namespace gflow::cli
