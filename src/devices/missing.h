// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gflow::devices {

/// A reading a device does not give, and why.
struct Missing {
  std::string reading;  ///< one of kReadings
  std::string why;      ///< what the driver said: "Not Supported"

  friend bool operator==(const Missing&, const Missing&) = default;
};

/// Every reading that may be missing, as files and the probe name it.
[[nodiscard]] const std::vector<std::string>& reading_names();

/// For Device::trouble: "no utilization, temperature (Not Supported); no processes (...)"; "" for
/// none.
[[nodiscard]] std::string missing_text(const std::vector<Missing>& missing);

}  // namespace gflow::devices
