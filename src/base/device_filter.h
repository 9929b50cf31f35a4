// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gflow {

/// Character devices by their numbers: all minor numbers from `first` to `last` of a major one.
struct DeviceNodes {
  std::uint32_t major = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;

  [[nodiscard]] static DeviceNodes one(std::uint32_t major, std::uint32_t minor) {
    return {.major = major, .first = minor, .last = minor};
  }
  [[nodiscard]] bool has(std::uint32_t its_major, std::uint32_t minor) const {
    return major == its_major && first <= minor && minor <= last;
  }

  friend auto operator<=>(const DeviceNodes&, const DeviceNodes&) = default;
};

/// "195:3", as sysfs has it in `dev`, or "195:0-247".
[[nodiscard]] std::string device_nodes_text(const DeviceNodes& nodes);
/// Empty if it is anything else, or has a number that no device of Linux can have.
[[nodiscard]] std::optional<DeviceNodes> parse_device_nodes(std::string_view text);

/// Which device nodes processes may not open.
struct DeviceFilter {
  std::vector<DeviceNodes> denied;  ///< as few as there can be, ascending

  [[nodiscard]] bool denies(std::uint32_t major, std::uint32_t minor) const;

  friend bool operator==(const DeviceFilter&, const DeviceFilter&) = default;
};

/// That denies all of `some` but those of `allowed`.
[[nodiscard]] DeviceFilter deny(std::vector<DeviceNodes> some,
                                const std::vector<DeviceNodes>& allowed);

}  // namespace gflow
