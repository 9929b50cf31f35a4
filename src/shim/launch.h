// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// What a job with GFLOW_LAUNCH in its environment runs in place of its command (`gbatch
/// --launch`): the processes of a distributed training.
namespace gflow::shim {

/// "ddp" and the like, of an environment; "" for a job that is one process.
[[nodiscard]] std::string launch_mode(const std::vector<std::string>& environment);

/// `arguments`: MODE COMMAND [ARGUMENT...]. The exit code: that of the first process that failed,
/// as shells have it.
[[nodiscard]] int launch(int count, char** arguments);

}  // namespace gflow::shim
