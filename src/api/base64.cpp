// SPDX-License-Identifier: Apache-2.0
#include "api/base64.h"

#include <cstdint>

namespace gflow::api {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The first `count` bytes at the front of the text, as the high bytes of 24 bits.
std::uint32_t group_of(std::string_view bytes) {
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    group = group << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U);
  }
  return group;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view piece = bytes.substr(at, 3);
    const std::uint32_t group = group_of(piece);
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= piece.size() ? kAlphabet[group >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::string_view piece = text.substr(at, 4);
    const bool last = at + 4 == text.size();
    while (last && piece.size() > 2 && piece.back() == '=') piece.remove_suffix(1);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t digit = i < piece.size() ? kAlphabet.find(piece[i]) : 0;
      if (digit == std::string_view::npos) return std::nullopt;
      group = group << 6 | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t i = 0; i + 1 < piece.size(); ++i) {
      bytes += static_cast<char>(group >> (16 - 8 * i) & 255U);
    }
  }
  // One text for one value: "QR==" would decode to the same byte as "QQ==".
  if (base64_encode(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace gflow::api
