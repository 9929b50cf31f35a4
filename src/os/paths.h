// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace gflow::os {

/// Where gflow keeps things. User mode follows the XDG variables; system mode is fixed.
struct Paths {
  std::string config_file;  ///< gflow.toml
  std::string state_dir;    ///< database, attempts, lock
  std::string logs_dir;     ///< <job_id>.log, gpu_resource_manager.log
  std::string run_dir;      ///< the socket
  std::string socket;

  [[nodiscard]] std::string database() const { return state_dir + "/gflow.db"; }
  [[nodiscard]] std::string lock() const { return state_dir + "/gflowd.lock"; }
  [[nodiscard]] std::string attempts_dir() const { return state_dir + "/attempts"; }
  [[nodiscard]] std::string answered_allocations() const { return state_dir + "/answered"; }
  [[nodiscard]] std::string mig_lock() const { return state_dir + "/gflow-mig.lock"; }
  [[nodiscard]] std::string ballast() const { return state_dir + "/ballast"; }
  [[nodiscard]] std::string daemon_log() const { return logs_dir + "/gpu_resource_manager.log"; }
};

/// $HOME, else that of the account; empty if the account is not known either.
[[nodiscard]] std::optional<std::string> own_home();
/// config ~/.config/gflow/gflow.toml, state and logs ~/.local/share/gflow, socket
/// ~/.local/share/gflow/run/gflowd.sock, or $XDG_RUNTIME_DIR/gflow/gflowd.sock where that path is
/// too long for a socket.
[[nodiscard]] Paths user_paths();
/// /etc/gflow, /var/lib/gflow, /run/gflow.
[[nodiscard]] Paths system_paths();
/// That of the user's own daemon: $GFLOW_SOCKET, else as its lock says while it has that, else the
/// usual one.
[[nodiscard]] std::string own_socket();
/// The socket a command talks to: $GFLOW_SOCKET, else the user's own daemon's if that is there,
/// else the system's if that is there, else the user's. A daemon that was killed left its socket:
/// where both are there, the user's is taken unless only the system's has a daemon.
[[nodiscard]] std::string client_socket();

/// Directory of helper programs (gflow-shim, gflow-gpumon, gflow-park): $GFLOW_LIBEXEC, else beside
/// the running program, else ../libexec/gflow from there.
[[nodiscard]] Result<std::string> helper_program(const std::string& name);
/// The same of a library that is loaded into programs of jobs; empty if it is not there.
[[nodiscard]] std::optional<std::string> helper_library(const std::string& name);

}  // namespace gflow::os
