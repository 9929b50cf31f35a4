// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "api/gpu_resources.h"
#include "base/result.h"
#include "core/job.h"

namespace gflow::server {

/// What a program says it needs, as every job asks for it. Errors: Usage, for a model that is none.
[[nodiscard]] Result<gflow::Request> request_of(const api::GpuNeed& need);

/// Whether what is asked of an allocation there is, by its allocation_id, is no other than it is:
/// as it was asked for, or as it was told. Errors: Usage.
[[nodiscard]] Result<void> check_is_of(const api::GpuNeed& need,
                                       const Job& allocation,
                                       const std::optional<api::GpuConfig>& told);

/// Puts "V100", "nvidia", "A100|H100" or "any" into a request. Errors: Usage.
[[nodiscard]] Result<void> read_gpu_type(std::string_view text, gflow::Request& into);

}  // namespace gflow::server
