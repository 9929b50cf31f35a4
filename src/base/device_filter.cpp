// SPDX-License-Identifier: Apache-2.0
#include "base/device_filter.h"

#include <algorithm>
#include <utility>

#include "base/text_fields.h"

namespace gflow {
namespace {

// Of dev_t within Linux (MINORBITS).
constexpr std::uint32_t kMostMajor = 0xFFF;
constexpr std::uint32_t kMostMinor = 0xFFFFF;

/// Overlapping ones, and those that go on where another ends, made one.
std::vector<DeviceNodes> merged(std::vector<DeviceNodes> all) {
  std::ranges::sort(all);
  std::vector<DeviceNodes> few;
  for (const DeviceNodes& one : all) {
    const bool goes_on =
        !few.empty() && few.back().major == one.major && one.first <= few.back().last + 1;
    if (goes_on) {
      few.back().last = std::max(few.back().last, one.last);
    } else {
      few.push_back(one);
    }
  }
  return few;
}

/// What is left of `all` without `out`.
std::vector<DeviceNodes> without(const std::vector<DeviceNodes>& all, const DeviceNodes& out) {
  std::vector<DeviceNodes> left;
  for (const DeviceNodes& one : all) {
    if (one.major != out.major || one.last < out.first || out.last < one.first) {
      left.push_back(one);
      continue;
    }
    if (one.first < out.first) left.push_back({one.major, one.first, out.first - 1});
    if (out.last < one.last) left.push_back({one.major, out.last + 1, one.last});
  }
  return left;
}

}  // namespace

std::string device_nodes_text(const DeviceNodes& nodes) {
  std::string text = std::to_string(nodes.major) + ":" + std::to_string(nodes.first);
  if (nodes.last != nodes.first) text.append("-").append(std::to_string(nodes.last));
  return text;
}

std::optional<DeviceNodes> parse_device_nodes(std::string_view text) {
  const bool is_range = text.find('-') != std::string_view::npos;
  const auto major = number_of<std::uint32_t>(take_field(text, ':'));
  const auto first = number_of<std::uint32_t>(take_field(text, '-'));
  const auto last = is_range ? number_of<std::uint32_t>(text) : first;
  if (!major || !first || !last || *major > kMostMajor || *last > kMostMinor || *first > *last) {
    return std::nullopt;
  }
  return DeviceNodes{.major = *major, .first = *first, .last = *last};
}

bool DeviceFilter::denies(std::uint32_t major, std::uint32_t minor) const {
  return std::ranges::any_of(denied, [&](const DeviceNodes& one) { return one.has(major, minor); });
}

DeviceFilter deny(std::vector<DeviceNodes> some, const std::vector<DeviceNodes>& allowed) {
  std::vector<DeviceNodes> denied = merged(std::move(some));
  for (const DeviceNodes& one : allowed) denied = without(denied, one);
  return {.denied = std::move(denied)};
}

}  // namespace gflow
