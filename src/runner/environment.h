// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runner/ports.h"

namespace gflow::runner {

/// What a job is told that only its node knows.
struct Surroundings {
  std::string socket;       ///< GFLOW_API; "" for none
  std::string log_path;     ///< GFLOW_LOG_FILE
  std::string config_path;  ///< GFLOW_JOB_CONFIG, "" if the job has none
  PortBlock ports;          ///< GFLOW_PORT_BASE and MASTER_PORT, the first of GFLOW_PORT_COUNT
};

/// These as variables, "NAME=value"; the rest of a job's environment comes with its order.
[[nodiscard]] std::vector<std::string> local_environment(const Surroundings& surroundings);

}  // namespace gflow::runner
