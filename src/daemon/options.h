// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/paths.h"

namespace gflow::daemon {

/// How one daemon is run.
struct Options {
  os::Paths paths;
  bool system = false;           ///< one daemon for all users, as root
  bool config_required = false;  ///< the configuration file was named
  /// What flags say, by the full names of settings: they go before all else.
  std::map<std::string, std::string> flags;
  std::vector<std::string> arguments;  ///< what makes another one like this
  int ready_fd = -1;                   ///< told when the daemon answers, or why it cannot
  /// Ends the gflowd that has the lock and goes on in its place, once all that can be known before
  /// is known to be right: the configuration, the devices, the programs it needs.
  bool replace = false;
};

/// Makes the directory the socket lies in, if that is gflow's own to make.
[[nodiscard]] Result<void> make_socket_directory(const Options& options);

}  // namespace gflow::daemon
