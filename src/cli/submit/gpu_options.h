// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command/command.h"
#include "core/gpu_request.h"
#include "core/job.h"

/// The options that say which GPUs, of gbatch, its scripts, `gjob update` and `gflow spec`.
namespace gflow::cli {

/// --gpus, --gpu-memory, --gpu-model, --shared.
[[nodiscard]] std::vector<Option> gpu_options();
/// --nodes, --constraint.
[[nodiscard]] std::vector<Option> node_options();

/// What those two say. Errors: Usage naming the option.
[[nodiscard]] Result<void> read_gpu_options(const Invocation& invocation,
                                            const GpuResources& resources,
                                            Request& request);
[[nodiscard]] Result<void> read_node_options(const Invocation& invocation, Request& request);

/// "requeue", "suspend", "none".
[[nodiscard]] Result<Preemption> read_preemption(std::string_view text);
/// --preempt-signal: "USR1", "10".
[[nodiscard]] Result<int> read_preempt_signal(std::string_view text);

}  // namespace gflow::cli
