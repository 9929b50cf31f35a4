// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/memory.h"
#include "base/result.h"
#include "core/gpu_config.h"
#include "engine/event.h"

namespace gflow::daemon {

/// What gflow.toml and the environment say. docs/configuration.md lists every key.
struct Config {
  std::string devices = "auto";      ///< [daemon] devices
  std::string socket;                ///< [daemon] socket, "" for the usual place
  std::string log_level = "info";    ///< [daemon] log_level
  bool cgroups = true;               ///< [runner] cgroups
  Memory ballast = Memory::mib(16);  ///< [store] ballast
  engine::Policy policy;             ///< [scheduler]
  GpuConfig gpus;                    ///< gpu_config.yaml

  friend bool operator==(const Config&, const Config&) = default;
};

/// Reads the file; one that is not there is the defaults, unless `required`. Then the environment:
/// GFLOW_SCHEDULER__BACKFILL_PATIENCE=10m wins over [scheduler] backfill_patience.
/// gpu_config.yaml beside it is read, too; its log_level is used where nothing else says one.
/// Errors: Usage naming file, line and key, with the nearest key there is.
[[nodiscard]] Result<Config> read_config(const std::string& path, bool required);

/// Every key there is, as "section.name". A test compares them with the documents.
[[nodiscard]] std::vector<std::string> config_keys();

}  // namespace gflow::daemon
