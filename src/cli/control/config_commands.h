// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "command/command.h"

/// The subcommands of 'gctl config', a file each.
namespace gflow::cli {

[[nodiscard]] Command config_check_command();
[[nodiscard]] Command config_set_command();
[[nodiscard]] Command config_unset_command();
[[nodiscard]] Command config_reload_command();

/// A gflow.toml, and whether the daemon that runs reads it.
struct ConfigFile {
  std::string path;
  bool is_daemons = false;
};
/// The one that was named (--gflow-config, GFLOW_CONFIG), else that of the daemon that runs, else
/// the usual one.
[[nodiscard]] ConfigFile config_file_in_use(Context& context);

}  // namespace gflow::cli
