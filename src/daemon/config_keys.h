// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "daemon/config.h"

namespace gflow::daemon {

/// One key of gflow.toml, and how its value is taken from the text a person would have typed.
struct ConfigKey {
  std::string_view section;
  std::string_view name;
  Result<void> (*set)(Config& config, const std::string& value);
};
[[nodiscard]] std::span<const ConfigKey> config_key_table();

}  // namespace gflow::daemon
