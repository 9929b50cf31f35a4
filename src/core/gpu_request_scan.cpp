// SPDX-License-Identifier: Apache-2.0
#include "core/gpu_request_scan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "base/utf8.h"

namespace gflow::gpu_request {
namespace {

/// The character of ASCII that one from a Chinese or Japanese keyboard stands for.
char ascii_of(const utf8::Char& c) {
  if (!c.valid) return kStrange;
  if (c.point >= 0xff01 && c.point <= 0xff5e) return static_cast<char>(c.point - 0xfee0);
  if (c.point == 0x3000 || c.point == '\t') return ' ';
  if (c.point == 0x3001) return ',';                       // ideographic comma
  if (c.point == 0x2212 || c.point == 0x2013) return '-';  // minus sign, en dash
  if (c.point == 0xd7) return 'x';                         // multiplication sign
  return c.point >= 0x20 && c.point < 0x7f ? static_cast<char>(c.point) : kStrange;
}

}  // namespace

Scan::Scan(std::string_view text) : text_(text) {
  while (!text.empty()) {
    const utf8::Char c = utf8::next(text);
    plain_ += ascii_of(c);
    bytes_.push_back(text_.size() - text.size());
    text.remove_prefix(c.length);
  }
  bytes_.push_back(text_.size());
}

std::string Scan::typed(Piece piece) const {
  return printable(text_.substr(bytes_[piece.begin], bytes_[piece.end] - bytes_[piece.begin]));
}

Piece Scan::trimmed(Piece piece) const {
  while (!piece.empty() && plain_[piece.begin] == ' ') ++piece.begin;
  while (!piece.empty() && plain_[piece.end - 1] == ' ') --piece.end;
  return piece;
}

std::unexpected<Mistake> Scan::mistake(Piece at, std::string what, std::string instead) const {
  return std::unexpected(
      Mistake{bytes_[at.begin], bytes_[at.end], at.begin + 1, std::move(what), std::move(instead)});
}

std::vector<Piece> Scan::split(Piece piece, char separator) const {
  std::vector<Piece> pieces;
  std::size_t from = piece.begin;
  for (std::size_t i = piece.begin; i < piece.end; ++i) {
    if (plain_[i] != separator) continue;
    pieces.push_back(trimmed({from, i}));
    from = i + 1;
  }
  pieces.push_back(trimmed({from, piece.end}));
  return pieces;
}

/// What is between the bracket that opens there and its end.
Read<Piece> Scan::bracket(std::size_t open, Piece within) const {
  for (std::size_t i = open + 1; i < within.end; ++i) {
    if (plain_[i] == '(') return mistake({i, i + 1}, tr("a bracket within brackets"));
    if (plain_[i] == ')') return Piece{open + 1, i};
  }
  return mistake({open, open + 1},
                 tr("this bracket is not closed"),
                 tr_format("write {})", typed(trimmed(within))));
}

Read<std::vector<Part>> Scan::parts(Piece piece) const {
  std::vector<Part> found;
  std::size_t from = piece.begin;
  std::optional<Piece> kind;
  std::size_t body_end = piece.begin;
  const auto close_part = [&](std::size_t end) {
    found.push_back({trimmed({from, kind ? body_end : end}), kind});
    kind.reset();
    from = end + 1;
  };
  for (std::size_t i = piece.begin; i < piece.end; ++i) {
    const char c = plain_[i];
    if (c == ')') return mistake({i, i + 1}, tr("this bracket was not opened"));
    if (c == '(') {
      if (kind) return mistake({i, i + 1}, tr("a second pair of brackets"));
      const auto inner = bracket(i, piece);
      if (!inner) return std::unexpected(inner.error());
      kind = trimmed(*inner);
      if (kind->empty()) kind = Piece{i + 1, i + 1};
      body_end = i;
      i = inner->end;
    } else if (c == ',') {
      close_part(i);
    } else if (kind && c != ' ') {
      return mistake({i, piece.end}, tr("nothing but a comma may follow the bracket"));
    }
  }
  close_part(piece.end);
  return found;
}

Read<std::optional<Decimal>> Scan::leading_number(Piece piece) const {
  Decimal number;
  std::size_t i = piece.begin;
  const auto digits = [&] {
    std::string out;
    for (; i < piece.end && is_digit(plain_[i]); ++i) out += plain_[i];
    return out;
  };
  const std::string whole = digits();
  std::string decimals;
  const bool is_range = i + 1 < piece.end && plain_[i] == '.' && plain_[i + 1] == '.';
  if (i < piece.end && plain_[i] == '.' && !is_range) {
    number.pointed = true;
    ++i;
    decimals = digits();
    if (decimals.empty()) {
      return mistake({piece.begin, i}, tr("digits are missing after the decimal point"));
    }
  }
  if (whole.empty() && decimals.empty()) return std::optional<Decimal>();
  number.at = {piece.begin, i};
  // Nothing reasonable has so many digits: a number just too large for every use.
  constexpr std::uint64_t kTooMany = 1'000'000'000'000'000;
  number.whole = whole.empty() ? 0 : parse_number(whole).value_or(kTooMany);
  number.whole = std::min(number.whole, kTooMany);
  decimals.erase(decimals.find_last_not_of('0') + 1);
  number.decimals = std::move(decimals);
  return number;
}

}  // namespace gflow::gpu_request
