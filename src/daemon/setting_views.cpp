// SPDX-License-Identifier: Apache-2.0
#include "daemon/setting_views.h"

#include <fmt/format.h>

#include <utility>

#include "config/gpu_config.h"

namespace gflow::daemon {
namespace {

std::string origin_of(const config::Config& config, const std::string& name) {
  const auto origin = config.origins.find(name);
  return origin == config.origins.end() ? "default" : origin->second;
}

}  // namespace

std::vector<api::SettingView> setting_views(const config::Config& config) {
  std::vector<api::SettingView> views;
  for (const settings::Setting& setting : settings::table()) {
    views.push_back({
        .name = setting.full_name(),
        .value = setting.write(config),
        .default_value = setting.default_value(),
        .origin = origin_of(config, setting.full_name()),
        .type = std::string(settings::type_name(setting.type)),
        .range = setting.range(),
        .applies = setting.applies == settings::Applies::Restart ? "restart" : "reload",
        .environment = setting.environment(),
        .help = std::string(setting.help),
    });
  }
  for (config::GpuSetting& setting : config::gpu_settings(config.gpus)) {
    const std::string name = "gpu_config." + setting.name;
    views.push_back({
        .name = name,
        .value = std::move(setting.value),
        .default_value = std::move(setting.default_value),
        .origin = origin_of(config, name),
        .type = std::move(setting.type),
        .range = {},
        .applies = "reload",
        .environment = {},
        .help = std::move(setting.help),
    });
  }
  return views;
}

}  // namespace gflow::daemon
