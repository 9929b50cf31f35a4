// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

/// What 'gctl config' prints for programs of files of the configuration.
namespace gflow::api {

/// What is wrong with files: 'gctl config check --json'.
struct ConfigCheckView {
  struct Problem {
    int line = 0;
    std::string message;
  };
  struct File {
    std::string path;
    bool exists = true;
    std::vector<Problem> problems;
    std::vector<std::string> notes;
  };
  std::vector<File> files;
};
[[nodiscard]] std::string write(const ConfigCheckView& check);

/// A setting that was changed in its file: 'gctl config set --json'.
struct ConfigChangeView {
  std::string file;
  std::string name;
  std::string before;  ///< the value by the file, or the default
  std::string value;   ///< the same now
  /// "in_force", "restart" (when gflowd is restarted), "not_running", "other_file" (the daemon that
  /// runs reads another), "overridden" (by what `origin` says).
  std::string state;
  std::string origin;  ///< where the daemon has its value from; "" if it was not asked
};
[[nodiscard]] std::string write(const ConfigChangeView& change);

/// What DaemonView::settings_for_restart is for a person.
[[nodiscard]] std::string for_restart_text(const std::vector<std::string>& settings);

}  // namespace gflow::api
