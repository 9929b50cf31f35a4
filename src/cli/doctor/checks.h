// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/token.h"
#include "api/types.h"
#include "base/result.h"
#include "command/terminal.h"

/// What `gflow doctor` looks at, as values: found out by doctor.cpp, judged here.
namespace gflow::cli {

enum class Level { Ok, Warn, Fail };

struct Check {
  std::string name = {};
  Level level = Level::Ok;
  std::string text = {};    ///< what is
  std::string advice = {};  ///< what it costs and what to do; "" if all is well or the text says it

  friend bool operator==(const Check&, const Check&) = default;
};

[[nodiscard]] Check check_daemon(const Result<api::DaemonView>& daemon, std::string_view version);
[[nodiscard]] std::vector<Check> check_gpus(const api::NodeView& node);
/// Without a daemon: whether there is a driver at all.
[[nodiscard]] Check check_driver(bool driver_loaded);
/// Where the daemon listens, and whether who asks there is safe for as long as it matters.
[[nodiscard]] std::vector<Check> check_listening(const api::DaemonView& daemon, WallTime now);
/// Those the caller may see; nothing to say of none.
[[nodiscard]] std::vector<Check> check_tokens(const std::vector<api::TokenView>& tokens);
/// Kill, memory, CPU and process isolation, and the daemon's own warnings.
[[nodiscard]] std::vector<Check> check_enforcement(const api::DaemonView& daemon);

struct StateDirectory {
  std::string path = {};
  std::string network_file_system = {};  ///< "" if it is none
  std::optional<std::uint64_t> free_bytes = {};
};
[[nodiscard]] std::vector<Check> check_state(const StateDirectory& directory);

struct Backups {
  std::string newest = {};  ///< its path; "" if there is none
  std::chrono::seconds age{0};
  std::size_t count = 0;
};
[[nodiscard]] Check check_backups(const Backups& backups);

struct Session {
  std::string user = {};
  std::string mode = "user";  ///< of the daemon
  bool systemd = false;       ///< runs this machine
  bool linger = false;        ///< services of the user outlive his logout
};
[[nodiscard]] Check check_session(const Session& session);
[[nodiscard]] Check check_helper(const std::string& name,
                                 const Result<std::string>& path,
                                 Level missing);

/// For a screen of so many columns; 0: for none.
[[nodiscard]] std::string checks_text(const std::vector<Check>& checks,
                                      const Painter& paint,
                                      std::size_t columns = 0);
[[nodiscard]] std::string checks_json(const std::vector<Check>& checks);
/// 1 if anything failed.
[[nodiscard]] int exit_code_of(const std::vector<Check>& checks);

}  // namespace gflow::cli
