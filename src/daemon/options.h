// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "os/paths.h"

namespace gflow::daemon {

/// How one daemon is run.
struct Options {
  os::Paths paths;
  bool system = false;           ///< one daemon for all users, as root
  bool config_required = false;  ///< the configuration file was named
  /// What flags say, by the full names of settings: they go before all else.
  std::map<std::string, std::string> flags;
  int ready_fd = -1;  ///< told when the daemon answers, or why it cannot
};

}  // namespace gflow::daemon
