// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "api/free_gpus.h"
#include "api/placement_view.h"
#include "command/command.h"
#include "command/context.h"

/// ginfo --free: which GPUs a request would get now.
namespace gflow::cli {

/// --free, and what may be said of the GPUs beside it.
[[nodiscard]] std::vector<Option> free_options();

/// What the scheduler would give a job that asks for no more than these GPUs. Errors: WrongState
/// with what it lacks, where that is not free now.
[[nodiscard]] Result<api::FreeGpus> free_gpus(const api::PlacementView& view,
                                              const api::MachineView& machine);

/// "0,3", as CUDA_VISIBLE_DEVICES takes it.
[[nodiscard]] std::string free_gpus_text(const api::FreeGpus& free);

/// Asks the daemon and prints them. Nothing is reserved. Errors: Usage of the request, Infeasible
/// for what can never be had here, as of free_gpus(), the daemon's.
[[nodiscard]] Result<int> print_free_gpus(const Invocation& invocation, Context& context);

}  // namespace gflow::cli
