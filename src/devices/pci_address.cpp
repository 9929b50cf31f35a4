// SPDX-License-Identifier: Apache-2.0
#include "devices/pci_address.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/text.h"

namespace gflow::devices {
namespace {

/// One hexadecimal field; empty if it is not one, or above `most`.
std::optional<std::uint32_t> hex(std::string_view text, std::uint32_t most) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (text.empty() || error != std::errc() || stop != end || value > most) return std::nullopt;
  return value;
}

/// Domain, bus, device and function in one number, in that order.
std::optional<std::uint64_t> read(std::string_view text) {
  std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() == 2) parts.insert(parts.begin(), "0");
  if (parts.size() != 3) return std::nullopt;
  const std::vector<std::string_view> slot = split(parts[2], '.');
  if (slot.size() != 2) return std::nullopt;
  const auto domain = hex(parts[0], std::numeric_limits<std::uint32_t>::max());
  const auto bus = hex(parts[1], 0xFF);
  const auto device = hex(slot[0], 0x1F);
  const auto function = hex(slot[1], 7);
  if (!domain || !bus || !device || !function) return std::nullopt;
  return std::uint64_t{*domain} << 16 | *bus << 8 | *device << 3 | *function;
}

}  // namespace

std::optional<std::string> normal_pci_address(std::string_view text) {
  const auto value = read(text);
  if (!value) return std::nullopt;
  return fmt::format(
      "{:04x}:{:02x}:{:02x}.{}", *value >> 16, *value >> 8 & 0xFF, *value >> 3 & 0x1F, *value & 7);
}

bool pci_before(std::string_view a, std::string_view b) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  return read(a).value_or(kLast) < read(b).value_or(kLast);
}

}  // namespace gflow::devices
