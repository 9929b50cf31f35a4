// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/gpu_resources.h"
#include "base/result.h"
#include "core/job.h"
#include "core/machine.h"
#include "core/port_block.h"

/// What a program that was given GPUs tells its framework.
namespace gflow::server {

/// What was got, and the environment that makes a program see it alone.
[[nodiscard]] api::GpuConfig config_of(const Job& job,
                                       const Attempt& attempt,
                                       const Machine& machine);
/// Errors, of both: Usage, where what it may take of the memory would come out as none.
[[nodiscard]] Result<api::PytorchConfig> pytorch_config(const api::GpuNeed& need,
                                                        const api::GpuConfig& config,
                                                        const Machine& machine);
[[nodiscard]] Result<api::TensorflowConfig> tensorflow_config(const api::GpuNeed& need,
                                                              const api::GpuConfig& config,
                                                              const Machine& machine);
/// Where the processes of a distributed training meet: MASTER_ADDR, MASTER_PORT and WORLD_SIZE,
/// added to the environment. The port is the first of the allocation's own, so that each process
/// that asks is told the same; where it was given none, one that is free now.
[[nodiscard]] Result<void> add_rendezvous(PortBlock own, api::GpuConfig& config);

}  // namespace gflow::server
