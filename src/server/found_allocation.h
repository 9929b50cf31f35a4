// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "api/gpu_resources.h"
#include "api/refusal.h"
#include "server/exchange.h"

namespace gflow::server {

/// Until GPUs are given or given back, before an answer says that they are not yet (202): less than
/// a client waits for one.
constexpr std::chrono::seconds kMaxAllocationWait{50};
constexpr int kAccepted = 202;

/// An allocation of this caller that there is, by its number or as the request names it by {id}.
/// Errors: NotFound, Permission.
[[nodiscard]] Result<const Job*> find_allocation(const Exchange& exchange, JobId id);
[[nodiscard]] Result<const Job*> find_allocation(const Exchange& exchange);
/// The one a need names by its allocation_id; errors name the field.
[[nodiscard]] api::Asked<const Job*> find_allocation(const Exchange& exchange,
                                                     const api::GpuNeed& need);

/// The machine of a node; null for one that is not known any more.
[[nodiscard]] const Machine* machine_of(const engine::State& state, const std::string& node);

/// What belongs to an allocation; why it waits as the caller, who may change it, may know it.
[[nodiscard]] api::GpuAllocation view_of_allocation(const Principal& caller,
                                                    const Service& service,
                                                    const Job& job);

}  // namespace gflow::server
