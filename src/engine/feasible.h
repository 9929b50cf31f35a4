// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/index.h"

/// Inside of the engine: whether a request could ever be met. Not for other modules.
namespace gflow::engine {

/// What a specification says of how it may be preempted agrees in itself, and with what it holds.
[[nodiscard]] Result<void> check_preemption(const JobSpec& spec);
/// A job may depend on one that who asks knows of, or on one before it in its submission, in which
/// it has this position. Errors: NotFound, and Exhausted for too many.
[[nodiscard]] Result<void> check_dependencies(const Index& index,
                                              const Dependencies& dependencies,
                                              std::size_t position,
                                              const JobSight& sight);
/// Errors: Code::Usage for a request that makes no sense, Code::Infeasible with what is missing for
/// one that no set of nodes could meet even if nothing ran.
[[nodiscard]] Result<void> check_request(Index& index, const Request& request);

/// Errors: Code::Infeasible for more of GPUs than jobs of its user may hold at once.
[[nodiscard]] Result<void> check_gpu_quota(const GpuQuota& quota, const JobSpec& spec);

/// The vendor and the models asked for, for people: "V100", "A100|H100", "nvidia"; "" is any.
[[nodiscard]] std::string kind_text(const Request& request);

}  // namespace gflow::engine
