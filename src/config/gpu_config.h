// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/problem.h"
#include "core/gpu_config.h"

namespace gflow::config {

/// Reads gpu_config.yaml, docs/configuration.md. A key that is not there has its default; of
/// gpu_resource, each name. Errors: Code::Usage with "FILE:LINE: KEY: ...".
[[nodiscard]] Result<GpuConfig> parse_gpu_config(const std::string& text, const std::string& file);

/// Everything that is wrong with the text of a gpu_config.yaml.
[[nodiscard]] Checked check_gpu_config(const std::string& text, const std::string& file);

/// A key of gpu_config.yaml as text, as 'gctl config show' prints settings.
struct GpuSetting {
  std::string name;  ///< "monitor_update_interval"
  std::string value;
  std::string default_value;
  std::string type;  ///< as settings::type_name()
  std::string help;
};
/// All but log_level, which is [daemon] log_level of gflow.toml.
[[nodiscard]] std::vector<GpuSetting> gpu_settings(const GpuConfig& config);

/// Where gpu_config.yaml is: what GFLOW_GPU_CONFIG names, else beside gflow.toml if it is there; ""
/// if there is none.
[[nodiscard]] std::string gpu_config_path(const std::string& gflow_toml);
/// The file GFLOW_GPU_CONFIG names, else gpu_config.yaml beside gflow.toml, which need not be
/// there. Errors: also NotFound for one that was named.
[[nodiscard]] Result<GpuConfig> read_gpu_config(const std::string& gflow_toml);
/// This file, which has to be there.
[[nodiscard]] Result<GpuConfig> read_gpu_config_file(const std::string& path);

}  // namespace gflow::config
