// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "api/account.h"
#include "config/gflow_toml.h"

namespace gflow::daemon {

/// Every setting in force, with where it comes from: those of gflow.toml by their section, those of
/// gpu_config.yaml as "gpu_config.KEY".
[[nodiscard]] std::vector<api::SettingView> setting_views(const config::Config& config);

}  // namespace gflow::daemon
