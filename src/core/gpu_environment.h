// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/machine.h"

namespace gflow {

/// What a program is told of the GPUs that it has and of its part of them, by name: GFLOW_GPUS and
/// those after it in docs/environment.md. `gpus` are indices of the machine.
[[nodiscard]] std::map<std::string, std::string> gpu_environment(const Request& request,
                                                                 const Machine& machine,
                                                                 const std::vector<int>& gpus);

}  // namespace gflow
