// SPDX-License-Identifier: Apache-2.0
#include "lab/tar.h"

#include <charconv>
#include <cstddef>

namespace gflow::lab {
namespace {

constexpr std::size_t kRecord = 512;
constexpr std::size_t kNameLength = 100;
constexpr std::size_t kSizeAt = 124;
constexpr std::size_t kSizeLength = 11;

}  // namespace

std::optional<std::string_view> tar_member(std::string_view archive, std::string_view name) {
  while (archive.size() >= kRecord && archive.front() != '\0') {
    const std::string_view named = archive.substr(0, kNameLength);
    const std::string_view digits = archive.substr(kSizeAt, kSizeLength);
    std::size_t size = 0;
    const auto read = std::from_chars(digits.begin(), digits.end(), size, 8);
    archive.remove_prefix(kRecord);
    if (read.ec != std::errc{} || size > archive.size()) return std::nullopt;
    if (named.substr(0, named.find('\0')) == name) return archive.substr(0, size);
    const std::size_t padded = (size + kRecord - 1) / kRecord * kRecord;
    archive.remove_prefix(std::min(padded, archive.size()));
  }
  return std::nullopt;
}

}  // namespace gflow::lab
