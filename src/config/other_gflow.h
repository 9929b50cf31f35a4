// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace gflow::config {

/// Not in the table of settings: monitor_update_interval of gpu_config.yaml.
constexpr std::string_view kMonitorInterval = "gpu_config.monitor_update_interval";

/// What a key of the other gflow, which keeps its configuration in the same file, is here.
struct OtherKey {
  std::string_view name;     ///< "daemon.port", or a table: all that is in it
  std::string_view setting;  ///< that means the same here; "" if nothing does
  std::string_view advice;   ///< what to use instead; "" if there is nothing to say
};

/// By "section.name", deeper ones with more dots. Empty if the other has no such key, either.
[[nodiscard]] std::optional<OtherKey> other_key(std::string_view name);

}  // namespace gflow::config
