// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/problem.h"
#include "core/gpu_config.h"
#include "settings/settings.h"

namespace gflow::config {

/// What gflow.toml, the environment and gpu_config.yaml say.
struct Config : settings::Settings {
  GpuConfig gpus;
  /// Where a value comes from, by "section.name": "/etc/gflow/gflow.toml:12", a variable of the
  /// environment, a file; what is not here is the default.
  std::map<std::string, std::string, std::less<>> origins;
  /// What of the file is another gflow's and ignored, or read as a setting of ours: sentences.
  std::vector<std::string> warnings;
};

/// Reads the file; one that is not there is the defaults, unless `required`. Then the environment:
/// GFLOW_SCHEDULER__BACKFILL_PATIENCE=10m wins over [scheduler] backfill_patience.
/// Flags, by the full name of their setting, win over both.
/// gpu_config.yaml beside it is read, too; its log_level is used where nothing else says one.
/// Keys of the other gflow that keeps its configuration there are no errors: other_gflow.h.
/// Errors: Usage naming file, line and key, with the nearest key there is.
[[nodiscard]] Result<Config> read_config(const std::string& path,
                                         bool required,
                                         const std::map<std::string, std::string>& flags = {});

/// Everything that is wrong with the text of a gflow.toml, and what of it is another gflow's.
[[nodiscard]] Checked check_gflow_toml(const std::string& text, const std::string& path);
/// What the text alone sets. Errors: Usage with the first that is wrong.
[[nodiscard]] Result<Config> read_gflow_toml(const std::string& text, const std::string& path);

}  // namespace gflow::config
