// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "api/snapshot.h"
#include "core/principal.h"
#include "engine/state.h"

namespace gflow::server {

/// All that decisions depend on, with so many of the newest ended jobs and those that others wait
/// for: what GET /api/v1/snapshot answers. Of a caller's the jobs they know of, with what they are
/// shown of these.
[[nodiscard]] api::Snapshot snapshot_of(const engine::State& state, Now now, std::size_t history);
[[nodiscard]] api::Snapshot snapshot_for(const Principal& caller,
                                         const engine::State& state,
                                         Now now,
                                         std::size_t history);

}  // namespace gflow::server
