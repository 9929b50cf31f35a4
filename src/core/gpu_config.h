// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/memory.h"
#include "base/share.h"
#include "core/gpu_request.h"
#include "core/machine.h"

namespace gflow {

/// What gpu_config.yaml says. config/gpu_config.h reads it.
struct GpuConfig {
  GpuResources resources;
  /// What a device of a model has where its driver does not say; goes before what the catalogue
  /// knows. By the names of catalogue::read_model().
  std::map<std::string, Memory, std::less<>> memory_specs;
  std::optional<std::chrono::seconds> monitor_update_interval;  ///< between readings
  /// Utilisation and power that change by less than this part of the whole are no news.
  std::optional<Share> resource_change_threshold;
  std::optional<std::string> log_level;  ///< in the words of gflow.toml

  friend bool operator==(const GpuConfig&, const GpuConfig&) = default;
};

/// The memory of a model by the configuration, else by the catalogue.
[[nodiscard]] std::optional<Memory> memory_spec(const GpuConfig& config, std::string_view model);

/// Gives each device that reports no memory what its model is sold with.
void fill_memory(Machine& machine, const GpuConfig& config);

/// Whether two readings differ in nothing that decides anything: in temperature, utilisation and
/// power, which are only shown.
[[nodiscard]] bool decides_alike(const Machine& before, const Machine& after);

/// Whether a reading says something new: anything changed but temperature, or utilisation and power
/// by less than the threshold. Beginning and ending to be idle is always news, memory is exact.
[[nodiscard]] bool is_news(const Machine& before, const Machine& after, Share threshold);

}  // namespace gflow
