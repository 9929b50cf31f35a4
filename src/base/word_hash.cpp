// SPDX-License-Identifier: Apache-2.0
#include "base/word_hash.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace gflow {
namespace {

constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;

}  // namespace

void WordHash::add(const char* data, std::size_t size) {
  for (std::size_t at = 0; at < size; at += kBlock) {
    std::array<std::uint64_t, 4> words{};
    static_assert(sizeof(words) == kBlock);
    std::memcpy(words.data(), data + at, sizeof(words));
    for (std::size_t i = 0; i < words.size(); ++i) {
      lanes_[i] = std::rotl((lanes_[i] ^ words[i]) * kOdd, 29);
    }
  }
}

std::uint64_t WordHash::value() const {
  std::uint64_t all = 0;
  for (const std::uint64_t lane : lanes_) all = std::rotl((all ^ lane) * kOdd, 29);
  return all;
}

std::string digest_text(std::uint64_t size, const WordHash& hash) {
  return fmt::format("{:x}-{:016x}", size, hash.value());
}

std::string digest_of(std::string_view text) {
  WordHash hash;
  const std::size_t whole = text.size() / WordHash::kBlock * WordHash::kBlock;
  hash.add(text.data(), whole);
  // The rest is filled up with zeros; the size tells them from content.
  std::array<char, WordHash::kBlock> rest{};
  (void)text.copy(rest.data(), rest.size(), whole);
  hash.add(rest.data(), rest.size());
  return digest_text(text.size(), hash);
}

}  // namespace gflow
