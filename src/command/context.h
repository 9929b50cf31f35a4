// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "base/translate.h"
#include "client/client.h"
#include "command/command.h"
#include "command/terminal.h"
#include "core/gpu_config.h"

namespace gflow::cli {

/// What a command is given of the world: streams, colours, the daemon. One per command run.
class Context {
 public:
  Context(std::ostream& out, std::ostream& err);

  /// Takes --color, --gflow-config and --json from what was typed.
  /// Errors: of the configuration file that was named, NotFound and Usage for one that is no TOML;
  /// trouble with the usual one keeps nobody from the daemon, and is noted when that is asked.
  [[nodiscard]] Result<void> configure(const Invocation& invocation);

  std::ostream& out;  ///< data
  std::ostream& err;  ///< everything else
  Painter paint;      ///< for out
  Painter paint_err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool can_move_cursor = false;  ///< out is a terminal that knows how
  std::size_t columns = 0;       ///< of the screen that out is; 0 if it is none
  bool json = false;
  bool pager = false;  ///< what is longer than the screen is shown in one

  /// The daemon, found when first asked for. That it is silent is said as a note.
  [[nodiscard]] client::Client& daemon();
  /// One more connection, for a second thread.
  [[nodiscard]] client::Client another_daemon() const;
  [[nodiscard]] const std::string& socket() const { return socket_; }
  /// Whether that is a gflowd of another machine, or a cluster.
  [[nodiscard]] bool is_remote() const { return !remote_.empty(); }
  /// Whether it is a cluster.
  [[nodiscard]] bool is_cluster() const;
  [[nodiscard]] bool is_slurm() const;
  /// For what can only be done on the machine itself. Errors: Usage with what is true of it and
  /// what to do: "the checks are of this machine: log in there".
  [[nodiscard]] Result<void> needs_own_machine(std::string_view why) const;
  /// The gflow.toml that was named, by --gflow-config or GFLOW_CONFIG; "" if none was.
  [[nodiscard]] const std::string& named_config() const { return named_config_; }
  /// The same, else the usual one of this user.
  [[nodiscard]] const std::string& config_file() const { return config_file_; }
  /// gpu_config.yaml beside the configuration in use, else the machine's in /etc/gflow.
  [[nodiscard]] Result<GpuConfig> gpu_config() const;

  /// Writes a screen of text to out, in a pager where a person would have to scroll for its top.
  void show(std::string_view text);
  /// A listing has a form that programs know: it is English where the output is no terminal. Errors
  /// and notes are not. Before the daemon is asked for.
  void is_for_programs() { for_programs_ = true; }
  void is_for_programs_off_terminal() { for_programs_ = !out_is_terminal; }
  /// What `make` makes of a listing, in the language it is wanted in.
  template <typename Make>
  [[nodiscard]] auto listing(Make make) const {
    return for_programs_ ? in_english(make) : make();
  }
  /// A line for the person at the terminal: "gbatch: note: ...".
  void note(std::string_view text);
  /// "gcancel: there is no job 7"
  void error(const Error& error);
  /// The next useful command, said only to a person.
  void hint(std::string_view text);
  void set_socket(std::string socket);

 private:
  /// The gflowd of another machine, by --server or GFLOW_SERVER. Whether it is known is found out
  /// when it is asked.
  [[nodiscard]] Result<void> choose_server(const Invocation& invocation);

  std::string program_;
  std::string socket_;
  std::string config_file_;
  std::string remote_;  ///< its name or URL; empty: it is the gflowd here
  std::string named_config_;
  std::string config_trouble_;  ///< why the usual file does not tell the socket; "" once noted
  std::optional<client::Client> client_;
  bool for_programs_ = false;
};

}  // namespace gflow::cli
