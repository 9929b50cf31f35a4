// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/mig_gpu.h"

namespace gflow {

/// What the driver of a GPU of this name and memory tells that it can be cut into, as NVIDIA's MIG
/// user guide lists it: for GPUs that are simulated. Real ones are asked.
[[nodiscard]] std::vector<MigKind> mig_kinds(std::string_view model, Memory memory);

/// Adds an instance to a simulated GPU as its driver would, with the first number that is free.
/// Errors: Usage for a profile or a place it does not have, Exhausted where the place is taken.
[[nodiscard]] Result<MigInstance> add_instance(MigGpu& gpu, const std::string& profile, int start);

}  // namespace gflow
