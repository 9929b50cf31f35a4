// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// What a caller may ask about itself and the daemon's settings, over the wire.
namespace gflow::api {

/// Who the daemon takes the caller for, and what follows from that.
struct PrincipalView {
  struct Project {
    std::string name;
    int max_priority = 0;
  };
  std::string name;
  std::string role;               ///< "user", "operator", "administrator"
  std::string known_by;           ///< "peer credentials"
  std::string scope;              ///< of its token; "admin" of who showed none
  std::string credential;         ///< the token's name, the certificate's subject; "" for others
  int max_priority = 0;           ///< the highest it may give a job
  std::vector<Project> projects;  ///< it is a member of, with another highest priority
  double gpus_held = 0;           ///< by its jobs, now
  std::optional<int> max_gpus;    ///< its jobs may hold at once; empty: any number
};
[[nodiscard]] std::string write(const PrincipalView& principal);
[[nodiscard]] Result<PrincipalView> read_principal(std::string_view json);

/// A setting of the daemon as it is now.
struct SettingView {
  std::string name;  ///< "scheduler.max_queued"
  std::string value;
  std::string default_value;
  std::string
      origin;  ///< "default", "/etc/gflow/gflow.toml:12", "GFLOW_SCHEDULER__ORDER", "--devices"
  std::string type;
  std::string range;        ///< "" if anything goes
  std::string applies;      ///< "reload" or "restart"
  std::string environment;  ///< the variable that sets it
  std::string help;
};
[[nodiscard]] std::string write_settings(const std::vector<SettingView>& settings);
[[nodiscard]] Result<std::vector<SettingView>> read_settings(std::string_view json);

}  // namespace gflow::api
