// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/job.h"
#include "core/machine.h"

namespace gflow::runner {

/// Facts of the daemon that a job is told.
struct Surroundings {
  std::string socket;       ///< GFLOW_API
  std::string log_path;     ///< GFLOW_LOG_FILE
  std::string config_path;  ///< GFLOW_JOB_CONFIG, "" if the job has none
  int port_base = 0;        ///< MASTER_PORT, first of port_count free ports
  int port_count = 0;
  std::string host;  ///< GFLOW_NODE of a job on this machine
};

/// The environment of one attempt: what the submitter had, then what gflow sets, which wins.
/// CUDA_VISIBLE_DEVICES is "" for a job without GPUs, and all there are for one that asked to see
/// them all; GFLOW_* as docs/environment.md lists them.
[[nodiscard]] std::vector<std::string> environment_of(const Job& job,
                                                      const Attempt& attempt,
                                                      const Payload& payload,
                                                      const Machine& machine,
                                                      const Surroundings& surroundings);

}  // namespace gflow::runner
