// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/spdlog.h>

#include <string>

#include "base/result.h"

/// The log of the daemon, logs/gpu_resource_manager.log: each line has a time, a level, and who
/// says it: "gpu_resource_manager" of the devices, "audit" of who did what, "gflowd" of all else.
namespace gflow::daemon {

/// Begins to write it. As library code must not log, only the daemon does; it keeps the file from
/// growing.
[[nodiscard]] Result<void> open_log(const std::string& path, const std::string& level);
void set_log_level(const std::string& level);  ///< in the words of gflow.toml
/// The one that says what is read of the devices.
[[nodiscard]] spdlog::logger& device_log();
/// The one that says who did what; whatever the level, all of it is written.
[[nodiscard]] spdlog::logger& audit_log();

}  // namespace gflow::daemon
