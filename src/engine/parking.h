// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/index.h"

/// Inside of the engine: whose GPU memory is taken to host memory while it is suspended. Not for
/// other modules.
namespace gflow::engine {

/// Whether that was begun and is not told to be done.
[[nodiscard]] bool is_being_parked(const Job& job);

/// The most host memory that takes.
[[nodiscard]] Memory copy_of(Index& index, const Job& job);

/// Whether a running job would be parked if it were suspended: it has one GPU of NVIDIA's on one
/// node that can, was not found to be one that cannot be, and so much host memory is free.
[[nodiscard]] bool can_be_parked(Index& index, const Job& job, Memory host_memory_free);

}  // namespace gflow::engine
