// SPDX-License-Identifier: Apache-2.0
#include "claims/version.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace gflow::claims {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<std::uint64_t> version_number(std::string_view text) {
  if (!is_digits(text) || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  return parse_number(text);
}

bool is_identifier(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t dot = text.find('.');
    parts.push_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

std::strong_ordering compare_identifiers(const std::string& a, const std::string& b) {
  const bool is_number = is_digits(a);
  if (is_number != is_digits(b)) {
    return is_number ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  if (is_number && a.size() != b.size()) return a.size() <=> b.size();
  return a.compare(b) <=> 0;
}

}  // namespace

Result<Version> read_version(std::string_view written) {
  const auto none = [&] {
    return fail(Code::Usage, fmt::format("'{}' is no semantic version", printable(written)));
  };
  std::string_view text = written;
  if (const std::size_t plus = text.find('+'); plus != std::string_view::npos) {
    if (!std::ranges::all_of(parts_of(text.substr(plus + 1)), is_identifier)) return none();
    text = text.substr(0, plus);
  }
  Version version;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    for (const std::string_view part : parts_of(text.substr(dash + 1))) {
      const bool has_zero = is_digits(part) && part.size() > 1 && part[0] == '0';
      if (!is_identifier(part) || has_zero) return none();
      version.before.emplace_back(part);
    }
    text = text.substr(0, dash);
  }
  const auto numbers = parts_of(text);
  if (numbers.size() != 3) return none();
  const auto major = version_number(numbers[0]);
  const auto minor = version_number(numbers[1]);
  const auto patch = version_number(numbers[2]);
  if (!major || !minor || !patch) return none();
  version.major = *major;
  version.minor = *minor;
  version.patch = *patch;
  return version;
}

std::strong_ordering compare(const Version& a, const Version& b) {
  if (const auto order = a.major <=> b.major; order != 0) return order;
  if (const auto order = a.minor <=> b.minor; order != 0) return order;
  if (const auto order = a.patch <=> b.patch; order != 0) return order;
  if (a.before.empty() || b.before.empty()) return b.before.size() <=> a.before.size();
  const std::size_t both = std::min(a.before.size(), b.before.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (const auto order = compare_identifiers(a.before[i], b.before[i]); order != 0) return order;
  }
  return a.before.size() <=> b.before.size();
}

}  // namespace gflow::claims
