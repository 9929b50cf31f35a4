// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "os/paths.h"

namespace gflow::daemon {

/// How one daemon is run.
struct Options {
  os::Paths paths;
  bool system = false;                 ///< one daemon for all users, as root
  bool config_required = false;        ///< the configuration file was named
  std::optional<std::string> devices;  ///< instead of the configuration's
  int ready_fd = -1;                   ///< told when the daemon answers, or why it cannot
};

}  // namespace gflow::daemon
