// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/utf8.h"

namespace gflow {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const std::size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

std::string join(std::span<const std::string> pieces, std::string_view separator) {
  return fmt::format("{}", fmt::join(pieces, separator));
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last || text.empty()) return std::nullopt;
  return value;
}

namespace {

/// Of characters that are a byte and a column each, and are shown as they are: most texts.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

}  // namespace

std::string printable(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const utf8::Char c = utf8::next(text);
    if (c.valid && !utf8::is_control(c.point)) {
      out.append(text.substr(0, c.length));
    } else if (c.valid && c.point == '\n') {
      out += "\\n";
    } else if (c.valid && c.point == '\t') {
      out += "\\t";
    } else {
      for (std::size_t i = 0; i < c.length; ++i) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
      }
    }
    text.remove_prefix(c.length);
  }
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const utf8::Char c = utf8::next(text);
    if (!c.valid || c.point == 0) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

std::optional<char32_t> first_unseen(std::string_view text) {
  bool can_join = false;
  while (!text.empty()) {
    const utf8::Char c = utf8::next(text);
    if (c.valid && (utf8::is_unseen(c.point) || (utf8::joins(c.point) && !can_join))) {
      return c.point;
    }
    can_join = c.point != U' ';
    text.remove_prefix(c.length);
  }
  return std::nullopt;
}

std::string shell_quote(std::span<const std::string> arguments) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  std::string line;
  for (const std::string& argument : arguments) {
    // A first word with "=" would be an assignment.
    const bool assigns = line.empty() && argument.find('=') != std::string::npos;
    if (!line.empty()) line += ' ';
    if (!argument.empty() && !assigns && argument.find_first_not_of(kPlain) == std::string::npos) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) {
      if (c == '\'') {
        line += "'\\''";
      } else {
        line += c;
      }
    }
    line += '\'';
  }
  return line;
}

namespace {

constexpr std::string_view kBlank = " \t\n";

bool is_blank(char c) { return kBlank.find(c) != std::string_view::npos; }

/// What a backslash makes of the character after it, taken from the front of the line. Between
/// double quotes it stays before all but $ ` " \ and a line end (POSIX shell, 2.2.3).
std::string take_escaped(std::string_view& line, char quote) {
  if (line.empty()) return "\\";
  const char c = line.front();
  line.remove_prefix(1);
  if (c == '\n') return "";
  const bool keeps = quote == '"' && std::string_view("$`\"\\").find(c) == std::string_view::npos;
  return keeps ? std::string{'\\', c} : std::string{c};
}

/// One word of a shell line, taken from its front.
Result<std::string> take_word(std::string_view& line) {
  std::string word;
  char quote = 0;
  while (!line.empty()) {
    const char c = line.front();
    if (quote == 0 && is_blank(c)) return word;
    line.remove_prefix(1);
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'') {
      word += take_escaped(line, quote);
    } else {
      word += c;
    }
  }
  if (quote != 0) return fail(Code::Usage, fmt::format("a {} is opened and never closed", quote));
  return word;
}

/// The line from its next word on: blanks and a comment are skipped.
std::string_view at_word(std::string_view line) {
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    if (!line.starts_with('#')) return line;
    line.remove_prefix(std::min(line.find('\n'), line.size()));
  }
}

}  // namespace

Result<std::vector<std::string>> shell_split(std::string_view line) {
  std::vector<std::string> words;
  for (line = at_word(line); !line.empty(); line = at_word(line)) {
    words.push_back(GF_TRY(take_word(line)));
  }
  return words;
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  const std::string lower = to_lower(word);
  std::optional<std::string> best;
  // At most a third of the letters wrong, at least one right.
  std::size_t best_distance = std::min(std::max<std::size_t>(1, word.size() / 3) + 1, word.size());
  for (const std::string& candidate : candidates) {
    if (word.size() >= candidate.size() + best_distance) continue;
    const std::size_t distance = edit_distance(lower, to_lower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::size_t display_width(std::string_view text) {
  if (is_plain(text)) return text.size();
  std::size_t width = 0;
  while (!text.empty()) {
    const utf8::Char c = utf8::next(text);
    width += c.valid ? utf8::columns(c.point) : c.length * 4;
    text.remove_prefix(c.length);
  }
  return width;
}

namespace {

struct Piece {
  std::string_view text;
  std::size_t width = 0;
};

/// As much of the front as has room in so many columns. A character that takes two is not halved,
/// and one that combines stays with the one before it.
Piece front_of(std::string_view text, std::size_t width) {
  Piece front;
  while (front.text.size() < text.size()) {
    const utf8::Char c = utf8::next(text.substr(front.text.size()));
    const std::size_t columns = c.valid ? utf8::columns(c.point) : c.length * 4;
    if (front.width + columns > width) break;
    front = {text.substr(0, front.text.size() + c.length), front.width + columns};
  }
  return front;
}

/// The end of the text that has room in so many columns.
std::string_view back_of(std::string_view text, std::size_t width) {
  const std::size_t all = display_width(text);
  if (all <= width) return text;
  Piece left_out = front_of(text, all - width);
  // One that does not end at the column asked for takes the next character, too.
  const std::size_t more = left_out.width < all - width ? 1 : 0;
  left_out = front_of(text, all - width + more);
  return text.substr(left_out.text.size());
}

constexpr std::string_view kEllipsis = "…";

}  // namespace

std::string cut_end(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  return std::string(front_of(text, width - 1).text).append(kEllipsis);
}

std::string cut_middle(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  const std::string_view front = front_of(text, width / 2).text;
  const std::size_t rest = width - 1 - display_width(front);
  return std::string(front).append(kEllipsis).append(back_of(text, rest));
}

namespace {

/// A word, a number, or what stands between them.
struct Token {
  std::string text;
  bool has_digits = false;
  bool is_word = false;
};

std::vector<Token> tokens_of(std::string_view text) {
  constexpr std::string_view kBetween = " ()[],/:;-~";
  std::vector<Token> tokens;
  bool was_between = true;
  for (const char c : text) {
    const bool is_between = kBetween.contains(c);
    if (tokens.empty() || is_between || was_between) tokens.emplace_back();
    Token& token = tokens.back();
    token.text += c;
    token.has_digits = token.has_digits || (c >= '0' && c <= '9');
    token.is_word = !is_between && !token.has_digits;
    was_between = is_between;
  }
  return tokens;
}

std::string joined(const std::vector<Token>& tokens) {
  std::string text;
  for (const Token& token : tokens) text += token.text;
  return text;
}

/// The longest word that can be shortened; null if there is none.
Token* longest_word(std::vector<Token>& tokens) {
  Token* longest = nullptr;
  for (Token& token : tokens) {
    const std::size_t width = display_width(token.text);
    if (!token.is_word || width <= 2) continue;
    if (longest == nullptr || width > display_width(longest->text)) longest = &token;
  }
  return longest;
}

/// What does not fit at the end is left out. A number with the mark right behind it would look like
/// the beginning of another.
std::string cut_before_number(std::vector<Token> tokens, std::size_t width) {
  if (width == 0) return "";
  std::string all = joined(tokens);
  while (!tokens.empty() && (display_width(all) >= width || tokens.back().has_digits)) {
    const Token last = std::move(tokens.back());
    tokens.pop_back();
    all = joined(tokens);
    const std::size_t before = display_width(all);
    if (last.is_word && before + 1 < width) return all + cut_end(last.text, width - before);
  }
  return all.append(kEllipsis);
}

}  // namespace

std::string cut_words(std::string_view text, std::size_t width) {
  const std::vector<Token> whole = tokens_of(text);
  std::vector<Token> shorter = whole;
  while (display_width(joined(shorter)) > width) {
    Token* word = longest_word(shorter);
    if (word == nullptr) return cut_before_number(whole, width);
    word->text = cut_end(word->text, display_width(word->text) - 1);
  }
  return joined(shorter);
}

std::vector<std::string_view> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string_view> lines;
  while (display_width(text) > width) {
    std::string_view line = front_of(text, width).text;
    if (line.empty()) line = text.substr(0, utf8::next(text).length);
    // The space itself may stand behind the last column.
    const std::size_t space = text.substr(0, line.size() + 1).rfind(' ');
    if (space != std::string_view::npos && space > 0) line = text.substr(0, space);
    lines.push_back(line);
    text.remove_prefix(line.size());
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (!text.empty()) lines.push_back(text);
  return lines;
}

}  // namespace gflow
