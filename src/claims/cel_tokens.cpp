// SPDX-License-Identifier: Apache-2.0
#include "claims/cel_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text.h"

namespace gflow::claims {
namespace {

constexpr std::size_t kMostShown = 40;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

void append_utf8(std::string& to, std::uint32_t point) {
  const auto put = [&to](std::uint32_t byte) { to += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xC0 | (point >> 6));
    return put(0x80 | (point & 0x3F));
  }
  if (point < 0x10000) {
    put(0xE0 | (point >> 12));
  } else {
    put(0xF0 | (point >> 18));
    put(0x80 | ((point >> 12) & 0x3F));
  }
  if (point < 0x10000) {
    put(0x80 | ((point >> 6) & 0x3F));
    return put(0x80 | (point & 0x3F));
  }
  put(0x80 | ((point >> 6) & 0x3F));
  put(0x80 | (point & 0x3F));
}

class CelScanner {
 public:
  explicit CelScanner(std::string_view text) : left_(text) {}

  Result<std::vector<CelToken>> all() {
    std::vector<CelToken> tokens;
    while (true) {
      skip();
      if (left_.empty()) {
        tokens.emplace_back();
        return tokens;
      }
      tokens.push_back(GF_TRY(next()));
    }
  }

 private:
  [[nodiscard]] std::unexpected<Error> unread(std::string_view at) const {
    return fail(Code::Usage,
                fmt::format("gflow-kube cannot read '{}'", printable(at.substr(0, kMostShown))));
  }

  void skip() {
    while (!left_.empty()) {
      if (std::string_view(" \t\n\r\f").contains(left_.front())) {
        left_.remove_prefix(1);
      } else if (left_.starts_with("//")) {
        left_.remove_prefix(std::min(left_.find('\n'), left_.size()));
      } else {
        return;
      }
    }
  }

  Result<CelToken> next() {
    if (is_digit(left_.front()) || (left_.size() > 1 && left_[0] == '.' && is_digit(left_[1]))) {
      return number();
    }
    const char first = left_.front();
    const bool is_prefix = left_.size() > 1 && (left_[1] == '"' || left_[1] == '\'');
    if (first == '"' || first == '\'') return string(false);
    if (is_prefix && (first == 'r' || first == 'R')) {
      left_.remove_prefix(1);
      return string(true);
    }
    if (is_prefix && (first == 'b' || first == 'B')) return unread(left_);
    if (is_name_start(first)) return name();
    return sign();
  }

  CelToken name() {
    std::size_t end = 1;
    while (end < left_.size() && (is_name_start(left_[end]) || is_digit(left_[end]))) ++end;
    return {CelToken::Kind::Name, take(end)};
  }

  Result<CelToken> sign() {
    constexpr std::array<std::string_view, 24> kSigns = {
        "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*",
        "/",  "%",  "?",  ":",  "(",  ")",  "[", "]", ".", ",", "{", "}"};
    for (const std::string_view one : kSigns) {
      if (left_.starts_with(one)) return CelToken{CelToken::Kind::Sign, take(one.size())};
    }
    return unread(left_);
  }

  Result<CelToken> number() {
    const std::string_view from = left_;
    if (left_.starts_with("0x") || left_.starts_with("0X")) {
      std::size_t end = 2;
      while (end < left_.size() && is_hex(left_[end])) ++end;
      return integer(from, take(end).substr(2), 16);
    }
    std::size_t end = 0;
    const auto digits = [&] {
      while (end < left_.size() && is_digit(left_[end])) ++end;
    };
    digits();
    bool is_double = false;
    if (end + 1 < left_.size() && left_[end] == '.' && is_digit(left_[end + 1])) {
      is_double = true;
      ++end;
      digits();
    }
    if (end < left_.size() && (left_[end] == 'e' || left_[end] == 'E')) {
      std::size_t power = end + 1;
      if (power < left_.size() && (left_[power] == '+' || left_[power] == '-')) ++power;
      if (power < left_.size() && is_digit(left_[power])) {
        is_double = true;
        end = power;
        digits();
      }
    }
    const std::string text = take(end);
    if (!is_double) return integer(from, text, 10);
    double value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc{} || !std::isfinite(value)) return unread(from);
    return CelToken{CelToken::Kind::Literal, text, {value}};
  }

  Result<CelToken> integer(std::string_view from, const std::string& digits, int base) {
    std::uint64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (read.ec != std::errc{} || digits.empty()) return unread(from);
    if (!left_.empty() && (left_.front() == 'u' || left_.front() == 'U')) {
      left_.remove_prefix(1);
      return CelToken{CelToken::Kind::Literal, digits, {value}};
    }
    constexpr std::uint64_t kLeast = std::uint64_t{1} << 63;
    if (value > kLeast) return unread(from);
    CelToken token{CelToken::Kind::Literal, digits, {}};
    token.is_least = value == kLeast;
    token.value.is = token.is_least ? std::numeric_limits<std::int64_t>::min()
                                    : static_cast<std::int64_t>(value);
    return token;
  }

  Result<CelToken> string(bool is_raw) {
    const std::string_view from = left_;
    const std::string_view quote = left_.substr(0, 1);
    const bool is_triple = left_.size() > 2 && left_[1] == left_[0] && left_[2] == left_[0];
    const std::string_view end = left_.substr(0, is_triple ? 3 : 1);
    left_.remove_prefix(end.size());
    std::string text;
    while (!left_.starts_with(end)) {
      if (left_.empty() || (!is_triple && left_.front() == '\n')) return unread(from);
      if (left_.front() != '\\' || is_raw) {
        text += left_.front();
        left_.remove_prefix(1);
      } else if (!escape(text)) {
        return unread(from);
      }
    }
    left_.remove_prefix(end.size());
    return CelToken{CelToken::Kind::Literal, std::string(quote), {std::move(text)}};
  }

  /// A backslash and what it stands before.
  bool escape(std::string& to) {
    constexpr std::string_view kFrom = "\\\"'`?abfnrtv";
    constexpr std::string_view kTo = "\\\"'`?\a\b\f\n\r\t\v";
    left_.remove_prefix(1);
    if (left_.empty()) return false;
    const char what = left_.front();
    if (const std::size_t at = kFrom.find(what); at != std::string_view::npos) {
      to += kTo[at];
      left_.remove_prefix(1);
      return true;
    }
    if (what == 'x' || what == 'X') return escape_number(to, 1, 2, 16);
    if (what == 'u') return escape_number(to, 1, 4, 16);
    if (what == 'U') return escape_number(to, 1, 8, 16);
    return what >= '0' && what <= '3' && escape_number(to, 0, 3, 8);
  }

  bool escape_number(std::string& to, std::size_t skipped, std::size_t digits, int base) {
    if (left_.size() < skipped + digits) return false;
    const std::string_view text = left_.substr(skipped, digits);
    std::uint32_t point = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), point, base);
    const bool is_point = point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || !is_point) return false;
    append_utf8(to, point);
    left_.remove_prefix(skipped + digits);
    return true;
  }

  std::string take(std::size_t size) {
    std::string text(left_.substr(0, size));
    left_.remove_prefix(size);
    return text;
  }

  std::string_view left_;
};

}  // namespace

Result<std::vector<CelToken>> cel_tokens_of(std::string_view text) {
  return CelScanner(text).all();
}

}  // namespace gflow::claims
