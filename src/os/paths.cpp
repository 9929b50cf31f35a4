// SPDX-License-Identifier: Apache-2.0
#include "os/paths.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "base/translate.h"
#include "os/file.h"
#include "os/lock_holder.h"
#include "os/unix_socket.h"
#include "os/user.h"

namespace gflow::os {
namespace {

constexpr const char* kSocketName = "/gflowd.sock";

/// An XDG base directory: the variable if it is an absolute path, else the default below home.
std::string base_directory(const std::string& variable, const std::string& below_home) {
  const auto value = environment(variable);
  if (value && value->starts_with('/')) return *value;
  return own_home().value_or("/") + below_home;
}

/// Whether a daemon is behind a socket: the file alone says nothing, as one that was killed leaves
/// it. The lock says it without a word to the daemon, where the kernel tells whose it is.
bool is_served(const std::string& socket, const std::string& lock) {
  if (!exists(socket)) return false;
  if (lock_holder(lock)) return true;
  const auto connected = connect_unix(socket, std::chrono::seconds(1));
  return connected || connected.error().code != Code::Unreachable;
}

}  // namespace

std::optional<std::string> own_home() {
  auto home = environment("HOME");
  if (home && home->starts_with('/')) return home;
  const auto account = find_account(::getuid());
  return account ? std::optional(account->home) : std::nullopt;
}

Paths user_paths() {
  Paths paths;
  paths.config_file = base_directory("XDG_CONFIG_HOME", "/.config") + "/gflow/gflow.toml";
  paths.state_dir = base_directory("XDG_DATA_HOME", "/.local/share") + "/gflow";
  paths.logs_dir = paths.state_dir + "/logs";
  // Not in $XDG_RUNTIME_DIR, if that can be: a logout removes it, and shells without it look
  // elsewhere.
  paths.run_dir = paths.state_dir + "/run";
  const auto runtime = environment("XDG_RUNTIME_DIR");
  // One that another user's login left in the environment (su, sudo) is that user's to change.
  if (!is_socket_path(paths.run_dir + kSocketName) && runtime && runtime->starts_with('/') &&
      is_own_directory(*runtime)) {
    paths.run_dir = *runtime + "/gflow";
  }
  paths.socket = paths.run_dir + kSocketName;
  return paths;
}

Paths system_paths() {
  return {"/etc/gflow/gflow.toml",
          "/var/lib/gflow",
          "/var/lib/gflow/logs",
          "/run/gflow",
          "/run/gflow/gflowd.sock"};
}

std::string own_socket() {
  if (auto socket = environment("GFLOW_SOCKET"); socket && !socket->empty()) return *socket;
  const Paths paths = user_paths();
  const auto said = read_lock(paths.lock());
  const bool is_named = said && !said->socket.empty() && said->socket != paths.socket;
  // In a copy of a state directory the file names another one's: nobody has the lock there.
  const bool is_held = is_named && exists(said->socket) && lock_holder(paths.lock());
  return is_held ? said->socket : paths.socket;
}

std::string client_socket() {
  std::string own = own_socket();
  if (const auto named = environment("GFLOW_SOCKET"); named && !named->empty()) return own;
  const Paths system = system_paths();
  if (!exists(system.socket)) return own;
  if (!exists(own)) return system.socket;
  const bool is_dead = !is_served(own, user_paths().lock());
  return is_dead && is_served(system.socket, system.lock()) ? system.socket : own;
}

namespace {

std::optional<std::string> helper_in(const std::vector<std::string>& places,
                                     const std::string& name,
                                     int use) {
  for (const std::string& place : places) {
    const std::string path = place + "/" + name;
    if (::access(path.c_str(), use) == 0) return path;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> helper_library(const std::string& name) {
  if (const auto directory = environment("GFLOW_LIBEXEC"); directory && !directory->empty()) {
    return helper_in({*directory}, name, R_OK);
  }
  const std::string here = program_directory();
  return helper_in({here, here + "/../libexec/gflow"}, name, R_OK);
}

Result<std::string> helper_program(const std::string& name) {
  if (const auto directory = environment("GFLOW_LIBEXEC"); directory && !directory->empty()) {
    return *directory + "/" + name;
  }
  const std::string here = program_directory();
  if (auto found = helper_in({here, here + "/../libexec/gflow"}, name, X_OK)) return *found;
  return fail(Code::NotFound,
              tr_format("{} is neither in {} nor in {}/../libexec/gflow: reinstall gflow ('./dev "
                        "install') or set GFLOW_LIBEXEC",
                        name,
                        here,
                        here));
}

}  // namespace gflow::os
