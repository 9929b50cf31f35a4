// SPDX-License-Identifier: Apache-2.0
#include "daemon/options.h"

#include "os/file.h"

namespace gflow::daemon {

Result<void> make_socket_directory(const Options& options) {
  const std::string& socket = options.paths.socket;
  const bool own = socket.substr(0, socket.find_last_of('/')) == options.paths.run_dir;
  if (!own) return {};
  return os::make_own_directory(options.paths.run_dir, options.system ? 0755 : 0700);
}

}  // namespace gflow::daemon
