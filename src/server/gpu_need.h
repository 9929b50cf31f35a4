// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "api/gpu_resources.h"
#include "api/refusal.h"
#include "base/result.h"
#include "core/job.h"
#include "engine/state.h"
#include "server/holder.h"

namespace gflow::server {

/// What a program says it needs, as every job asks for it. Errors: Usage, of the field that is
/// wrong, by its JSON pointer.
[[nodiscard]] api::Asked<gflow::Request> request_of(const api::GpuNeed& need,
                                                    const engine::State& state);

/// The memory that is meant by so many GB of each device. What a model that is named is sold with
/// is all that such devices here report, which is a little less.
[[nodiscard]] Memory memory_wanted(const gflow::Request& request,
                                   double gb,
                                   const engine::State& state);

/// The processes it is bound to. Errors: of a field that names none of the caller's.
[[nodiscard]] api::Asked<HeldFor> held_for(const api::GpuNeed& need, const Principal& caller);

/// Whether what is asked of an allocation there is, by its allocation_id, is no other than it is:
/// as it was asked for, or as it was told. Errors: Usage.
[[nodiscard]] api::Asked<void> check_is_of(const api::GpuNeed& need,
                                           const Job& allocation,
                                           const std::optional<api::GpuConfig>& told,
                                           const engine::State& state);

/// Puts "V100", "nvidia", "A100|H100" or "any" into a request, which is normal then. Errors: Usage.
[[nodiscard]] Result<void> read_gpu_type(std::string_view text, gflow::Request& into);

}  // namespace gflow::server
